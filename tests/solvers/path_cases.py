"""Small problems with everything that makes kinks meet: ties, copies, separable classes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tausvm.kernels import Points, make_kernel
from tausvm.operators.products import KernelProducts, LinearProducts, MatrixProducts, Products
from tausvm.solvers.path import MovingBox, PathProblem

from ..reference.objective import SideCosts, side_costs

Array = NDArray[np.float64]

KERNELS = {
    "linear": {},
    "rbf": {"gamma": 1.0},
    "poly": {"degree": 2, "coef0": 1.0, "gamma": 1.0},
    "precomputed": {},
}
FEATURES = ("generic", "integers", "copies", "rounded", "constant")


@dataclass
class PathCase:
    """One problem for all τ."""

    X: Array
    y: Array
    cost: Array
    loss: str
    kernel: str
    intercept: str

    @property
    def constant(self) -> float:
        return 1.0 if self.intercept == "penalised" else 0.0

    @cached_property
    def K(self) -> Array:
        """The matrix of the dual, computed apart from the package's products."""
        kernel = "linear" if self.kernel == "precomputed" else self.kernel
        settings = {"gamma": 1.0, "degree": 3, "coef0": 0.0} | KERNELS[kernel]
        if kernel == "linear":
            values = self.X @ self.X.T
        elif kernel == "poly":
            values = (self.X @ self.X.T + settings["coef0"]) ** settings["degree"]
        else:
            values = np.exp(-((self.X[:, None] - self.X[None]) ** 2).sum(axis=2))
        return values + self.constant

    @property
    def products(self) -> Products:
        if self.kernel == "precomputed":
            return MatrixProducts(self.K - self.constant, self.constant)
        if self.kernel == "linear":
            return LinearProducts(self.X, self.constant)
        settings = {"gamma": 1.0, "degree": 3, "coef0": 0.0} | KERNELS[self.kernel]
        return KernelProducts(make_kernel(self.kernel, **settings), Points(self.X), self.constant)

    @property
    def box(self) -> MovingBox:
        if self.loss == "hinge":
            return MovingBox.hinge(self.y, self.cost)
        return MovingBox.pinball(self.cost)

    @property
    def problem(self) -> PathProblem:
        return PathProblem(self.products, self.y, self.box, self.intercept == "free")

    def costs(self, tau: float) -> SideCosts:
        """The loss as the reference has it."""
        return side_costs(self.loss, self.y, self.cost, tau)


def path_case(seed: int) -> PathCase:
    """A problem from a seed."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(4, 60)), int(rng.integers(1, 5))
    kind = FEATURES[rng.integers(len(FEATURES))]
    X = rng.normal(size=(n, d))
    if kind == "integers":
        X = rng.integers(0, 3, size=(n, d)).astype(np.float64)
    elif kind == "copies":
        X = np.repeat(X, 3, axis=0)[:n]
    elif kind == "rounded":
        X = np.round(X, 1)
    elif kind == "constant":
        X = np.c_[np.ones(n), rng.integers(-1, 2, size=(n, d))]
    signal = X @ rng.normal(size=X.shape[1])
    loss = "hinge" if rng.uniform() < 0.6 else "pinball"
    if loss == "hinge":
        noise = rng.choice([0.0, 1.0, 3.0]) * rng.normal(size=n)  # 0: separable
        y = np.where(signal + noise > np.median(signal), 1.0, -1.0)
        if rng.uniform() < 0.15:
            y[:] = -1.0
        y[0] = -y[1:].max() if len(set(y)) == 1 else y[0]
    else:
        y = np.round(signal + rng.normal(size=n), int(rng.integers(0, 3)))
    weight = np.ones(n) if rng.uniform() < 0.6 else rng.integers(1, 4, size=n).astype(np.float64)
    cost = 10.0 ** rng.uniform(-3, 3) * weight
    kernel = str(rng.choice(list(KERNELS)))
    return PathCase(X, y, cost, loss, kernel, str(rng.choice(["free", "penalised", "none"])))
