"""Random linear problems, each from one seed, with their reference matrix and costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tausvm.losses import (
    EpsilonInsensitive,
    Loss,
    Pinball,
    SquaredEpsilonInsensitive,
    SquaredPinball,
)
from tausvm.operators import LinearOperator
from tausvm.solvers import Problem

from ..reference.objective import SideCosts, side_costs

Array = NDArray[np.float64]

LOSSES = ("epsilon_insensitive", "squared_epsilon_insensitive", "pinball", "squared_pinball")
#: how the offset enters: not at all, free, or as a penalised constant column
OFFSETS = {"none": (False, 0.0), "free": (True, 0.0), "column": (False, 2.0)}
KINDS = ("dense", "dense32", "csr", "csr32", "csr64bit")


@dataclass
class LinearCase:
    """One problem."""

    X: Array
    y: Array
    weights: Array
    loss: str
    offset: str
    C: float
    tau: float
    epsilon: float

    @property
    def costs(self) -> SideCosts:
        return side_costs(self.loss, self.y, self.C * self.weights, self.tau, self.epsilon)

    @property
    def package_loss(self) -> Loss:
        return {
            "epsilon_insensitive": lambda: EpsilonInsensitive(self.epsilon),
            "squared_epsilon_insensitive": lambda: SquaredEpsilonInsensitive(self.epsilon),
            "pinball": lambda: Pinball(self.tau, self.epsilon),
            "squared_pinball": lambda: SquaredPinball(self.tau, self.epsilon),
        }[self.loss]()

    @property
    def free(self) -> bool:
        return OFFSETS[self.offset][0]

    @property
    def K(self) -> Array:
        return self.X @ self.X.T + OFFSETS[self.offset][1] ** 2

    def problem(self, kind: str = "dense") -> Problem:
        free, column = OFFSETS[self.offset]
        terms = self.package_loss.dual_terms(self.y, self.C * self.weights)
        return Problem(LinearOperator(as_kind(self.X, kind)), self.y, terms, free, column)


def as_kind(X: Array, kind: str) -> object:
    """X as one of the kinds of matrix that the solvers take."""
    if kind == "dense":
        return np.ascontiguousarray(X)
    if kind == "dense32":
        return np.ascontiguousarray(X, dtype=np.float32)
    matrix = sp.csr_matrix(X.astype(np.float32) if kind == "csr32" else X)
    if kind == "csr64bit":
        matrix.indices, matrix.indptr = (
            matrix.indices.astype(np.int64),
            matrix.indptr.astype(np.int64),
        )
    return matrix


def random_case(
    seed: int,
    loss: str,
    offset: str,
    log_C: tuple[float, float] = (-2.0, 3.0),
    shape: tuple[int, int] | None = None,
) -> LinearCase:
    """A problem with everything else drawn from the seed; X is representable in float32."""
    rng = np.random.default_rng(seed)
    n, d = shape or (int(rng.integers(3, 60)), int(rng.integers(1, 9)))
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    X[rng.random(n) < 0.1] = 0.0
    X = X.astype(np.float32).astype(np.float64)
    y = X @ rng.normal(size=d) + 0.5 * rng.standard_t(3, size=n) + rng.normal()
    weights = rng.exponential(size=n) if rng.random() < 0.5 else np.ones(n)
    return LinearCase(
        X=X,
        y=y,
        weights=weights,
        loss=loss,
        offset=offset,
        C=10 ** rng.uniform(*log_C),
        tau=float(rng.uniform(0.05, 0.95)),
        epsilon=float(rng.choice([0.0, 0.1, 0.5])),
    )
