"""What every display needs: matplotlib, or a clear word that it is missing."""

from __future__ import annotations

from typing import Any


def require_pyplot(caller: str) -> Any:
    """``matplotlib.pyplot``, imported when first needed."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{caller} needs matplotlib, which is not installed: pip install 'tausvm[plot]'"
        ) from error
    return plt
