"""Which rows of a file were fitted: a number a row, kept with the model."""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray


@dataclass(frozen=True)
class FingerprintSettings:
    """How much of a model's file may tell of its rows."""

    #: rows up to which they are kept: 11 bytes a row, 2 MB
    most_rows: int = 200_000


def fingerprints(X: Any, y: Any) -> NDArray[np.uint64] | None:
    """A number a row from what a model reads of it and its target; None for a sparse matrix."""
    if not isinstance(X, pd.DataFrame):
        return None
    whole = X.reset_index(drop=True).assign(**{"\0target": np.asarray(y, dtype=np.float64)})
    found = pd.util.hash_pandas_object(whole, index=False)
    return np.asarray(found.to_numpy(), dtype=np.uint64)


def packed(numbers: NDArray[np.uint64] | None) -> str | None:
    """The numbers as text; None where there are none, or too many."""
    if numbers is None or len(numbers) > FingerprintSettings().most_rows:
        return None
    data = np.sort(numbers).astype("<u8").tobytes()
    return base64.b85encode(zlib.compress(data)).decode("ascii")


def fitted_among(text: str | None, X: Any, y: Any) -> int | None:
    """How many of these rows were fitted; None where that is not known."""
    here = fingerprints(X, y)
    if text is None or here is None:
        return None
    known = np.frombuffer(zlib.decompress(base64.b85decode(text)), dtype="<u8")
    return int(np.isin(here, known).sum())
