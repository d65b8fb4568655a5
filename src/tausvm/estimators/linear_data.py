"""Training data of the linear machines: nothing that has the size of X is copied."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._core.rows import has_duplicates
from .data import Matrix, TrainingSet, check_weights, validated

DTYPES = [np.float64, np.float32]
#: the largest entry of X: its fourth power is a number, with room for sums and costs
LARGEST = 1e60


def linear_training_set(estimator: Any, X: Any, y: Any, sample_weight: Any) -> TrainingSet:
    """Checked data without rows of weight zero; float32 stays float32, CSR stays CSR."""
    if _needs_nothing(X, y):
        validated(estimator, X, y, skip_check_array=True)
    else:
        X, y = validated(
            estimator,
            X,
            y,
            accept_sparse="csr",
            accept_large_sparse=True,
            dtype=DTYPES,
            order="C",
            y_numeric=True,
            ensure_min_samples=2,
        )
    check_size(X)
    n_given = len(y)
    if n_given >= 2**31:
        raise ValueError(f"X must have fewer than 2**31 rows, got {n_given}")
    if sample_weight is None:  # a view of one number, not n of them
        weight = np.broadcast_to(1.0, n_given)
    else:
        weight = check_weights(sample_weight, n_given)
    # nor n numbers for all rows
    rows: Any = range(n_given) if sample_weight is None else np.flatnonzero(weight > 0)
    if len(rows) < 2:
        raise ValueError(
            "sample_weight must be positive for 2 samples at least, got 1 sample of "
            f"{n_given} with a positive weight"
        )
    if len(rows) < n_given:
        X, y, weight = X[rows], y[rows], weight[rows]
    y = np.ascontiguousarray(y, dtype=np.float64)
    return TrainingSet(without_duplicates(X), y, weight, rows, n_given)


def _needs_nothing(X: Any, y: Any) -> bool:
    """Whether data are as they should be: then scikit-learn's checks, which take as long as a pass
    over a small X, have nothing to find."""
    return (
        sp.issparse(X)
        and X.format == "csr"
        and X.ndim == 2
        and X.dtype in DTYPES
        and type(y) is np.ndarray
        and y.dtype == np.float64
        and y.ndim == 1
        and 2 <= X.shape[0] == len(y)
        and X.shape[1] >= 1
        # a sum that overflows is left to the checks
        and bool(np.isfinite(X.data.sum()) and np.isfinite(y.sum()))
    )


def check_size(X: Matrix) -> None:
    """A ValueError for entries so large that a solver's products would not be numbers."""
    entries = X.data if sp.issparse(X) else X
    if entries.dtype == np.float32:  # these have no such numbers
        return
    flat = entries.reshape(-1)
    with np.errstate(over="ignore"):
        # a sum of squares is the quickest look at all entries
        if flat @ flat <= LARGEST**2:
            return
    largest = max(float(flat.max()), -float(flat.min()))
    if largest > LARGEST:
        raise ValueError(
            f"X must have entries of at most {LARGEST:g} in size, got {largest:.3g}; scale the "
            "data (StandardScaler)"
        )


def without_duplicates(X: Matrix) -> Matrix:
    """CSR entries given in parts added up; copied only where there are such."""
    if not sp.issparse(X) or X.has_canonical_format:
        return X
    last = np.full(X.shape[1], -1, dtype=np.int64)
    if not has_duplicates(X.indices, X.indptr, last):
        return X
    X = X.copy()
    X.sum_duplicates()
    return X
