"""Data of the shapes of the linear-SVR paper's Table 1, generated, and the spam inboxes.

Feature frequencies follow a power law, as those of words and ids do; a few features are in
almost every row and most in hardly any. Targets are linear in the features with heavy-tailed
noise, in the paper's ranges. Everything is drawn from fixed seeds.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.datasets import load_svmlight_file

from .data import data_folder, load

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Tuned:
    """The paper's parameters for one loss after selection (its Table 5)."""

    C: float
    epsilon: float


def sparse_rows(
    n: int, d: int, nonzeros: int, seed: int, values: str = "counts", power: float = 1.1
) -> sp.csr_matrix:
    """About ``nonzeros`` distinct columns a row, column j drawn ∝ (j + 5)^(−power)."""
    rng = np.random.default_rng(seed)
    weights = (np.arange(d) + 5.0) ** -power
    cumulated = np.cumsum(weights) / weights.sum()
    places = rng.permutation(d).astype(np.int64)  # frequent features are anywhere
    indices, counts = [], []
    step = max(1, 4_000_000 // nonzeros)
    surplus = _surplus(cumulated, nonzeros)
    for start in range(0, n, step):
        rows = min(step, n - start)
        drawn = np.searchsorted(cumulated, rng.random((rows, surplus)))
        keys = np.unique(np.arange(rows)[:, None] * np.int64(d) + places[np.minimum(drawn, d - 1)])
        counts.append(np.bincount(keys // d, minlength=rows))
        indices.append((keys % d).astype(np.int32))
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    columns = np.concatenate(indices)
    if values == "binary":
        data = np.ones(len(columns))
    else:  # the logarithm of a count times the rarity of the word
        rarity = np.empty(d)
        rarity[places] = -np.log(weights / weights.sum())
        data = np.log1p(rng.geometric(0.5, size=len(columns))) * rarity[columns]
    kind = np.int32 if len(columns) < 2**31 else np.int64
    return sp.csr_matrix((data, columns.astype(kind), indptr.astype(kind)), shape=(n, d))


def _surplus(cumulated: Array, nonzeros: int) -> int:
    """Draws with repetition that give so many distinct columns on average."""
    share = np.diff(np.concatenate([[0.0], cumulated]))
    draws = nonzeros
    while draws < 50 * nonzeros and -np.expm1(draws * np.log1p(-share)).sum() < nonzeros:
        draws = int(draws * 1.05) + 1
    return draws


def linear_target(X: Any, seed: int, noise: float) -> Array:
    """Standardised xᵀw plus t-distributed noise."""
    rng = np.random.default_rng(seed)
    signal = np.asarray(X @ rng.normal(size=X.shape[1])).ravel()
    signal = (signal - signal.mean()) / signal.std()
    return signal + noise * rng.standard_t(4, size=len(signal))


def onto(y: Array, low: float, high: float) -> Array:
    """y on a range, its outer thousandths cut."""
    ends = np.quantile(y, [0.001, 0.999])
    return low + (high - low) * np.clip((y - ends[0]) / (ends[1] - ends[0]), 0.0, 1.0)


def msd(n: int = 463_715) -> tuple[Array, Array]:
    """Rows with the means, covariances and tails of the 1,176 real ones; y in [0, 1]."""
    real, _ = load("year_msd_1176", "standard")
    rng = np.random.default_rng(0)
    factor = np.linalg.cholesky(np.cov(real.T) + 1e-3 * np.eye(90))
    X = rng.normal(size=(n, 90)) @ factor.T
    X *= np.sqrt(4.0 / rng.chisquare(6, size=n))[:, None]
    y = onto(-np.exp(0.5 * linear_target(X, 1, 1.5)), 0.0, 1.0)
    # the scales of the original, from tens to thousands
    X *= np.geomspace(1.0, 300.0, 90)[rng.permutation(90)]
    return X, y


def tfidf(n: int = 16_087) -> tuple[sp.csr_matrix, Array]:
    X = sparse_rows(n, 150_360, 1_240, seed=2)
    return X * 0.01, onto(linear_target(X, 3, 0.7), -7.9, -0.52)


def kdd(n: int = 1_000_000) -> tuple[sp.csr_matrix, Array]:
    X = sparse_rows(n, 1_000_000, 30, seed=4, values="binary")
    return X, (linear_target(X, 5, 1.0) > -1.0).astype(np.float64)


def tall(n: int = 100_000) -> tuple[Array, Array]:
    """Dense and standardised, where LIBLINEAR's dual solvers do not converge."""
    X, y = msd(n)
    return (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()


def inbox(name: str) -> tuple[sp.csr_matrix, Array]:
    with gzip.open(data_folder() / f"ecml2006_spam_a_{name}.svm.gz") as file:
        X, y = load_svmlight_file(file, n_features=106_780)
    # the constructor takes indices of 32 bits where they are enough, the loader does not
    return sp.csr_matrix((X.data, X.indices, X.indptr), shape=X.shape), y


@dataclass(frozen=True)
class Dataset:
    """A way to make the data, and the paper's tuned parameters by loss."""

    make: Callable[[], tuple[Any, Array]]
    l1: Tuned
    l2: Tuned


DATASETS = {
    "msd": Dataset(msd, Tuned(2.0, 2**-4), Tuned(64.0, 2**-10)),
    "tfidf": Dataset(tfidf, Tuned(64.0, 2**-10), Tuned(64.0, 2**-10)),
    "kdd": Dataset(kdd, Tuned(2.0, 2**-4), Tuned(0.5, 2**-10)),
    "u00": Dataset(lambda: inbox("u00"), Tuned(2.0, 2**-4), Tuned(0.5, 2**-10)),
    "u01": Dataset(lambda: inbox("u01"), Tuned(2.0, 2**-4), Tuned(0.5, 2**-10)),
    "tall": Dataset(tall, Tuned(2.0, 2**-4), Tuned(64.0, 2**-10)),
}


def dataset(name: str, normalised: bool) -> tuple[Any, Array]:
    """A data set, its rows scaled to unit length where asked; kept in TAUSVM_CACHE if set."""
    folder = os.environ.get("TAUSVM_CACHE")
    path = Path(folder) / f"{name}.npz" if folder else None
    if path is not None and path.is_file():
        held = np.load(path)
        X = (
            held["X"]
            if "X" in held
            else sp.csr_matrix(
                (held["data"], held["indices"], held["indptr"]), shape=tuple(held["shape"])
            )
        )
        y = held["y"]
    else:
        X, y = DATASETS[name].make()
        if path is not None:
            parts = (
                {"X": X}
                if isinstance(X, np.ndarray)
                else {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape}
            )
            np.savez(path, y=y, **parts)
    return (unit_rows(X) if normalised else X), y


def unit_rows(X: Any) -> Any:
    """Rows of length one; zero rows stay."""
    if isinstance(X, np.ndarray):
        length = np.sqrt(np.einsum("ij,ij->i", X, X))
        return X / np.where(length > 0, length, 1.0)[:, None]
    length = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    scaled = X.data / np.repeat(np.where(length > 0, length, 1.0), np.diff(X.indptr))
    return sp.csr_matrix((scaled, X.indices, X.indptr), shape=X.shape)
