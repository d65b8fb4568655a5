"""Training data as the solvers take it: rows of positive weight, checked Gram matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, eigvalsh
from sklearn.utils.validation import check_array, validate_data

from .parameters import refuse

Array = NDArray[np.float64]
Index = NDArray[np.int64]
#: a dense float64 array or a CSR matrix, which has no static type
Matrix: TypeAlias = Any

#: a given Gram matrix up to this order is checked by a Cholesky factorisation
CHECKED_ORDER = 2000
#: asymmetry and negative eigenvalues up to this share of the largest entry are rounding
ROUNDING = 1e-6


@dataclass(frozen=True)
class TrainingSet:
    """The rows that count.

    Attributes
    ----------
    X : array or CSR matrix
        Features, or the Gram matrix where it was given.
    y : array (n,)
    weight : array (n,)
        Positive.
    rows : int64 array (n,), or a range where it is all of them
        Where these rows stand in the X that was given.
    n_given : int
        How many rows that had.
    """

    X: Matrix
    y: NDArray[Any]
    weight: Array
    rows: Index
    n_given: int

    def __len__(self) -> int:
        return len(self.rows)


def training_set(
    estimator: Any, X: Any, y: Any, sample_weight: Any, precomputed: bool, **checks: Any
) -> TrainingSet:
    """Checked training data without its rows of weight zero; the estimator notes the features."""
    X, y = validate_data(
        estimator,
        X,
        y,
        accept_sparse=False if precomputed else "csr",
        dtype=np.float64,
        order="C",
        ensure_min_samples=2,
        **checks,
    )
    if precomputed:
        check_square(X)
    data = weighted_rows(X, y, sample_weight, precomputed)
    if len(data) < 2:
        raise ValueError(
            "sample_weight must be positive for 2 samples at least, got 1 sample of "
            f"{len(y)} with a positive weight"
        )
    return data


def weighted_rows(X: Matrix, y: NDArray[Any], sample_weight: Any, precomputed: bool) -> TrainingSet:
    """Drop the rows of weight zero: a fit goes as if they had never been there."""
    n_given = len(y)
    weight = check_weights(sample_weight, n_given)
    rows = np.flatnonzero(weight > 0)
    if len(rows) < n_given:
        X = X[np.ix_(rows, rows)] if precomputed else X[rows]
        y, weight = y[rows], weight[rows]
    if precomputed:
        X = check_gram_matrix(X)
    elif sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return TrainingSet(X, y, weight, rows, n_given)


def check_weights(sample_weight: Any, n: int) -> Array:
    """Weights as a float64 array, ones for None."""
    if sample_weight is None:
        return np.ones(n)
    given = np.asarray(sample_weight)
    if given.shape != (n,):
        raise refuse("sample_weight", f"of shape ({n},), one weight a row of X", given.shape)
    weight: Array = check_array(
        given, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if weight.min() < 0:
        raise refuse("sample_weight", "non-negative", float(weight.min()))
    if not weight.any():
        raise ValueError(f"sample_weight must have a weight above zero, got {n} zeros")
    return weight


def check_gram_matrix(K: Array) -> Array:
    """A given Gram matrix, made symmetric to the last bit; a ValueError if it cannot be one."""
    diagonal = np.diagonal(K)
    if diagonal.min() < 0:
        at = int(diagonal.argmin())
        raise ValueError(
            "kernel='precomputed' needs a positive semidefinite X, "
            f"got {diagonal[at]:.3g} on its diagonal (row {at})"
        )
    scale = float(np.abs(K).max())
    asymmetry = max(
        float(np.abs(K[s : s + 256] - K[:, s : s + 256].T).max()) for s in range(0, len(K), 256)
    )
    if asymmetry > ROUNDING * scale:
        raise ValueError(
            "kernel='precomputed' needs a symmetric X, "
            f"got entries that differ by {asymmetry:.3g} from those mirrored"
        )
    if asymmetry > 0:
        K = 0.5 * (K + K.T)
    if len(K) <= CHECKED_ORDER and scale > 0:
        lifted = K.copy()
        np.einsum("ii->i", lifted)[:] += ROUNDING * scale
        try:
            cholesky(lifted, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            smallest = eigvalsh(K, subset_by_index=[0, 0], check_finite=False)[0]
            raise ValueError(
                "kernel='precomputed' needs a positive semidefinite X, "
                f"got one whose smallest eigenvalue is {smallest:.3g}"
            ) from None
    return K


def weighted_variance(X: Matrix, weight: Array) -> float:
    """The variance of all entries of X, a row of weight k counted as k rows."""
    total = float(weight.sum()) * X.shape[1]
    if sp.issparse(X):
        stored = np.repeat(weight, np.diff(X.indptr))
        mean = float(stored @ X.data) / total
        zeros = total - float(stored.sum())
        squares = float(stored @ (X.data - mean) ** 2) + max(zeros, 0.0) * mean**2
    else:
        mean = float(weight @ X.sum(axis=1)) / total
        squares = float(weight @ np.square(X - mean).sum(axis=1))
    variance = squares / total
    # the mean of equal entries may be off by rounding
    return variance if variance > (1e-14 * mean) ** 2 else 0.0


def check_square(X: Matrix) -> None:
    """The shape of a Gram matrix given for training."""
    if X.shape[0] != X.shape[1]:
        raise ValueError(f"kernel='precomputed' needs a square X in fit, got shape {X.shape}")
