"""Training data as the solvers take it: rows of positive weight, checked Gram matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, eigvalsh
from sklearn.utils.validation import check_array, check_consistent_length, validate_data

from .parameters import refuse

Array = NDArray[np.float64]
Index = NDArray[np.int64]
#: a dense float64 array or a CSR matrix, which has no static type
Matrix: TypeAlias = Any

#: a given Gram matrix up to this order is checked by a Cholesky factorisation
CHECKED_ORDER = 2000
#: asymmetry and negative eigenvalues up to this share of the largest entry are rounding
ROUNDING = 1e-6
#: C·w of a row lies between this and its reciprocal: objectives hold its square times kernel values
LARGEST_COST = 1e100
#: the smallest positive weight against the largest: a certificate adds up what rows cost, and would
#: not see those of a smaller one
SMALLEST_SHARE = 1e-15
COST_SPAN = f"between {1.0 / LARGEST_COST:g} and {LARGEST_COST:g}"
#: how much of an RBF kernel's exponent rounding may be, where it comes from inner products
DISTANCE_ROUNDING = 1e-10
#: rows that a pass over X takes at a time
PART_ROWS = 4096


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
    """Checked training data without its rows of weight zero; the estimator notes the features.

    Rows that are no numbers stay as they are where a kernel is a callable and may know them.
    """
    own = callable(getattr(estimator, "kernel", None))
    things = rows_of_things(X) if own else None
    if things is None:
        X, y = _kernel_rows(estimator, X, y, precomputed, ensure_min_samples=2, **checks)
    else:
        if not getattr(estimator, "_takes_things", False):
            raise ValueError(
                f"X must hold numbers, got rows of {things.dtype}: {type(estimator).__name__} "
                "needs features even where kernel is a callable, or kernel='precomputed'"
            )
        X, y = things, validate_data(estimator, "no_validation", y, **checks)
        check_consistent_length(X, y)
        vars(estimator).pop("n_features_in_", None)  # of an earlier fit
    if precomputed:
        check_square(X)
    data = weighted_rows(X, y, sample_weight, precomputed)
    if data.n_given < 2:  # other rows are counted where they are checked
        raise ValueError(f"X must have 2 rows at least, got {data.n_given}")
    if len(data) < 2:
        raise ValueError(
            "sample_weight must be positive for 2 samples at least, got 1 sample of "
            f"{len(y)} with a positive weight"
        )
    return data


def prediction_rows(estimator: Any, X: Any, precomputed: bool) -> Matrix:
    """Rows for a kernel machine to predict at, checked against those of its training."""
    if not hasattr(estimator, "n_features_in_"):  # fitted to rows that are no numbers
        things = rows_of_things(X)
        return np.asarray(X) if things is None else things
    return _canonical(_kernel_rows(estimator, X, "no_validation", precomputed, reset=False))


def rows_of_things(X: Any) -> NDArray[Any] | None:
    """An array with an entry or more a row, for rows that are no vectors of numbers; else None.

    Such as strings, graphs, lists of various lengths, or matrices.
    """
    if sp.issparse(X) or np.isscalar(X) or not hasattr(X, "__len__"):
        return None
    try:
        array = np.asarray(X)
    except ValueError:  # sequences of various lengths
        array = np.empty(len(X), dtype=object)
        for i, row in enumerate(X):
            array[i] = row
    if array.ndim == 0 or len(array) == 0:
        return None
    if array.dtype.kind == "O":
        try:
            array.astype(np.float64)
        except (TypeError, ValueError):
            return array
    numbers = array.dtype.kind not in "US"
    return None if numbers and array.ndim <= 2 else array


def _kernel_rows(estimator: Any, X: Any, y: Any, precomputed: bool, **checks: Any) -> Any:
    return validated(
        estimator,
        X,
        y,
        accept_sparse=False if precomputed else "csr",
        dtype=np.float64,
        order="C",
        **checks,
    )


def validated(estimator: Any, X: Any, y: Any = "no_validation", **checks: Any) -> Any:
    """What :func:`sklearn.utils.validation.validate_data` makes of X and y, for any input.

    That and all compiled code trust the index arrays of a sparse matrix, so these are looked at
    before.
    """
    return validate_data(estimator, well_formed(X), y, **checks)


def well_formed(X: Any) -> Any:
    """X; a ValueError for a sparse matrix whose index arrays point outside of it."""
    if not sp.issparse(X):
        return X
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got a {X.ndim}-D sparse array of shape {X.shape} instead: X must "
            "have a row for each sample"
        )
    if X.format in ("lil", "dok"):  # made of Python objects, which lead nowhere
        X = X.tocsr()
    if X.format in ("csr", "csc", "bsr"):
        blocks = X.blocksize if X.format == "bsr" else (1, 1)
        lines, width = (size // block for size, block in zip(X.shape, blocks, strict=True))
        _check_compressed(X, *((width, lines) if X.format == "csc" else (lines, width)))
    elif X.format == "coo":
        if not len(X.row) == len(X.col) == len(X.data):
            lengths = len(X.row), len(X.col), len(X.data)
            raise _malformed(X, "row, col and data must be of one length", lengths)
        _check_index(X, "row", X.row, X.shape[0], "rows")
        _check_index(X, "col", X.col, X.shape[1], "columns")
    return X


def _check_compressed(X: Matrix, lines: int, width: int) -> None:
    """``indptr`` begins at 0, never falls and ends within ``indices``, and these are columns."""
    indptr, stored = X.indptr, min(len(X.indices), len(X.data))
    if indptr.dtype.kind not in "iu" or indptr.shape != (lines + 1,):
        raise _malformed(X, f"indptr must hold {lines + 1} integers", indptr.shape)
    if indptr[0] != 0:
        raise _malformed(X, "indptr must begin with 0", indptr[0])
    if (indptr[1:] < indptr[:-1]).any():
        at = int((indptr[1:] < indptr[:-1]).argmax())
        raise _malformed(X, "indptr must not fall", f"{indptr[at]} before {indptr[at + 1]}")
    if indptr[-1] > stored:
        raise _malformed(X, f"indptr must end with {stored} entries at most", indptr[-1])
    across = "rows" if X.format == "csc" else "columns"
    _check_index(X, "indices", X.indices[: indptr[-1]], width, across)


def _check_index(X: Matrix, array: str, index: NDArray[Any], size: int, name: str) -> None:
    if index.dtype.kind not in "iu":
        raise _malformed(X, f"{array} must hold integers", index.dtype)
    # as unsigned numbers the negative ones are too large: one pass instead of two
    unsigned = index.view(f"u{index.dtype.itemsize}")
    if len(index) and unsigned.max() >= size:
        wrong = index[unsigned.argmax()]
        raise _malformed(X, f"{array} must lie in 0 … {size - 1}, as it has {size} {name}", wrong)


def _malformed(X: Matrix, rule: str, got: object) -> ValueError:
    return ValueError(f"X is a malformed {X.format.upper()} matrix: its {rule}, got {got}")


def _canonical(X: Matrix) -> Matrix:
    """CSR rows sorted and without duplicates, with 32-bit indices where these suffice."""
    if not sp.issparse(X):
        return X
    if not X.has_canonical_format:
        X = X.copy()  # what was given stays as it was
        X.sum_duplicates()
    wide = X.indices.dtype != np.int32 or X.indptr.dtype != np.int32
    if wide and max(*X.shape, len(X.data)) < 2**31:
        parts = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
        X = type(X)(parts, shape=X.shape)
        X.has_canonical_format = True
    return X


def weighted_rows(X: Matrix, y: NDArray[Any], sample_weight: Any, precomputed: bool) -> TrainingSet:
    """Drop the rows of weight zero: a fit goes as if they had never been there."""
    n_given = len(y)
    weight = check_weights(sample_weight, n_given)
    rows = np.flatnonzero(weight > 0)
    if len(rows) < n_given:
        X = X[np.ix_(rows, rows)] if precomputed else X[rows]
        y, weight = y[rows], weight[rows]
    X = check_gram_matrix(X) if precomputed else _canonical(X)
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
    smallest, largest = float(weight[weight > 0].min()), float(weight.max())
    for extreme in (smallest, largest):
        if not 1.0 / LARGEST_COST <= extreme <= LARGEST_COST:
            raise refuse("sample_weight", f"0 or {COST_SPAN}", extreme)
    if smallest < SMALLEST_SHARE * largest:
        raise ValueError(
            f"sample_weight must be 0 or at least {SMALLEST_SHARE:g} of the largest, below which "
            f"no sum in float64 shows a row, got {smallest!r} beside {largest!r}; set such weights "
            "to 0"
        )
    return weight


def costs(C: float, weight: Array, name: str = "C") -> Array:
    """cᵢ = C·wᵢ; a ValueError that names C or the weights for what float64 has no room for."""
    with np.errstate(over="ignore", under="ignore"):
        cost: Array = float(C) * weight
    smallest, largest = float(cost.min()), float(cost.max())
    if smallest >= 1.0 / LARGEST_COST and largest <= LARGEST_COST:
        return cost
    if (weight == 1.0).all():
        raise refuse(name, COST_SPAN, C)
    extreme = float(weight.max() if largest > LARGEST_COST else weight.min())
    raise ValueError(f"{name} times sample_weight must be {COST_SPAN}, got {C!r} times {extreme!r}")


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


def scale_gamma(X: Matrix, weight: Array) -> float:
    """γ = "scale": one over the features times the variance of all entries, 1 for equal ones.

    A row of weight k counts as k rows.
    """
    entries = X.data if sp.issparse(X) else X
    size = max(float(entries.max(initial=0.0)), -float(entries.min(initial=0.0)))
    if size == 0.0:
        return 1.0
    unit = _power_of_two(size)
    variance = _variance(X, unit, weight / _power_of_two(float(weight.max())))
    if variance == 0.0:
        return 1.0
    with np.errstate(over="ignore", under="ignore"):
        gamma = float(1.0 / (X.shape[1] * variance) / unit / unit)
    if not np.finfo(np.float64).tiny <= gamma < np.inf:
        raise ValueError(
            f"gamma='scale' is out of float64's range for X: the variance of its entries is "
            f"{variance:.3g} times the square of {unit:.3g}; scale X, for instance by "
            "StandardScaler"
        )
    return gamma


def _power_of_two(size: float) -> float:
    """One near a positive number: to divide by it rounds nothing, and squares stay in range."""
    return float(2.0 ** np.clip(np.floor(np.log2(size)), -1000.0, 1000.0))


def _variance(X: Matrix, unit: float, weight: Array) -> float:
    """The variance of all entries of X/unit, a row of weight k counted as k rows."""
    total = float(weight.sum()) * X.shape[1]
    if sp.issparse(X):
        stored, entries = np.repeat(weight, np.diff(X.indptr)), X.data / unit
        mean = float(stored @ entries) / total
        zeros = total - float(stored.sum())
        squares = float(stored @ (entries - mean) ** 2) + max(zeros, 0.0) * mean**2
    else:
        # by parts: nothing of the size of X is made
        parts = [slice(s, s + PART_ROWS) for s in range(0, len(X), PART_ROWS)]
        mean = sum(float(weight[part] @ (X[part] / unit).sum(axis=1)) for part in parts) / total
        squares = sum(
            float(weight[part] @ np.square(X[part] / unit - mean).sum(axis=1)) for part in parts
        )
    variance = squares / total
    # the mean of equal entries may be off by rounding
    return variance if variance > (1e-14 * mean) ** 2 else 0.0


def without_cancellation(X: Matrix, gamma: float, megabytes: float) -> Matrix:
    """X, dense where γ(‖x‖² + ‖x'‖² − 2⟨x, x'⟩) of its sparse rows would round too much.

    Rows that far from the origin are hardly sparse, and dense ones are moved to an origin of their
    own. A ValueError where they are too many for that.
    """
    if not sp.issparse(X):
        return X
    longest = float(np.asarray(X.multiply(X).sum(axis=1)).max(initial=0.0))
    if gamma * longest * float(np.finfo(np.float64).eps) <= DISTANCE_ROUNDING:
        return X
    if 8.0 * X.shape[0] * X.shape[1] > megabytes * 2**20:
        raise ValueError(
            "X must have rows near the origin where kernel='rbf' is to be computed from a sparse "
            f"matrix, got norms up to {longest**0.5:.3g}, at which distances cancel; scale the "
            "columns (sklearn.preprocessing.MaxAbsScaler), or give a dense X"
        )
    return X.toarray()


def own_origin(X: Array) -> Array:
    """A point to subtract before distances are taken: small coordinates keep their digits.

    It is that of each column's range which is nearest to 0, so no coordinate grows: rounding the
    difference costs no row more than it has lost to rounding anyway, whatever the others are.
    """
    return np.clip(0.0, X.min(axis=0), X.max(axis=0))


def check_square(X: Matrix) -> None:
    """The shape of a Gram matrix given for training."""
    if X.shape[0] != X.shape[1]:
        raise ValueError(f"kernel='precomputed' needs a square X in fit, got shape {X.shape}")
