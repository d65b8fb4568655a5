"""Where Dask is not installed, its tests are skipped and say so."""

from __future__ import annotations

import pytest

pytest.importorskip("dask", reason="the extra dask is not installed: pip install 'tausvm[dask]'")
pytest.importorskip("distributed", reason="the extra dask is not installed")
