"""Random problems, each from one seed, with their reference matrix and costs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tausvm.kernels import Points, make_kernel
from tausvm.losses import (
    EpsilonInsensitive,
    Hinge,
    Loss,
    Pinball,
    SquaredEpsilonInsensitive,
    SquaredPinball,
)
from tausvm.operators import CachedKernel, GivenKernel, KernelOperator
from tausvm.solvers import Problem

from ..reference.objective import SideCosts, side_costs

Array = NDArray[np.float64]

LOSSES = (
    "epsilon_insensitive",
    "squared_epsilon_insensitive",
    "pinball",
    "squared_pinball",
    "hinge",
)
KERNELS = ("linear", "rbf", "poly", "laplacian", "precomputed")
FLAWS = ("none", "duplicates", "zero_rows", "constant_y")


@dataclass
class Case:
    """One problem: the data, the loss by name and numbers, the kernel by name."""

    X: Array
    y: Array
    weights: Array
    loss: str
    kernel: str
    offset: bool
    C: float
    tau: float = 0.5
    epsilon: float = 0.0
    gamma: float = 0.5

    @property
    def cost(self) -> Array:
        return self.C * self.weights

    @property
    def costs(self) -> SideCosts:
        """The loss as the reference has it."""
        return side_costs(self.loss, self.y, self.cost, self.tau, self.epsilon)

    @property
    def package_loss(self) -> Loss:
        """The loss as the package has it."""
        match self.loss:
            case "epsilon_insensitive":
                return EpsilonInsensitive(self.epsilon)
            case "squared_epsilon_insensitive":
                return SquaredEpsilonInsensitive(self.epsilon)
            case "pinball":
                return Pinball(self.tau, self.epsilon)
            case "squared_pinball":
                return SquaredPinball(self.tau, self.epsilon)
        return Hinge(self.tau)

    @cached_property
    def K(self) -> Array:
        """The kernel matrix, spelt out."""
        X = self.X
        match self.kernel:
            case "linear" | "precomputed":
                return X @ X.T
            case "rbf":
                return np.exp(-self.gamma * ((X[:, None] - X) ** 2).sum(axis=2))
            case "laplacian":
                return np.exp(-self.gamma * np.abs(X[:, None] - X).sum(axis=2))
        return (self.gamma * X @ X.T + 1.0) ** 3

    def gram(self, cache_size: float = 100.0, dtype: DTypeLike = np.float64) -> KernelOperator:
        if self.kernel == "precomputed":
            return GivenKernel(self.K)
        kernel = make_kernel(self.kernel, self.gamma, degree=3, coef0=1.0)
        return CachedKernel(kernel, Points(self.X), cache_size, dtype)

    def problem(
        self,
        cache_size: float = 100.0,
        dtype: DTypeLike = np.float64,
        gram: KernelOperator | None = None,
    ) -> Problem:
        terms = self.package_loss.dual_terms(self.y, self.cost)
        gram = self.gram(cache_size, dtype) if gram is None else gram
        return Problem(gram, self.y, terms, self.offset)

    def __str__(self) -> str:
        return (
            f"{self.loss} {self.kernel} n={len(self.y)} offset={self.offset} C={self.C:.3g} "
            f"tau={self.tau:.3g} epsilon={self.epsilon:.3g} gamma={self.gamma:.3g}"
        )


def random_case(
    seed: int,
    loss: str,
    kernel: str,
    offset: bool,
    weighted: bool,
    flaw: str = "none",
    largest_n: int = 80,
    log_C: tuple[float, float] = (-3.0, 4.0),
) -> Case:
    """A problem with everything else drawn from the seed; ``log_C`` is the range of log₁₀ C."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, largest_n + 1))
    d = int(rng.integers(1, 6))
    X = rng.normal(size=(n, d))
    y = np.sin(2 * X[:, 0]) + 0.4 * rng.standard_t(3, size=n)
    if flaw == "duplicates":
        copied = rng.integers(0, n, size=n // 2)
        X[: n // 2] = X[copied]
        y[: n // 4] = y[copied[: n // 4]]
    elif flaw == "zero_rows":
        X[rng.random(n) < 0.3] = 0.0
    elif flaw == "constant_y":
        y[:] = rng.normal()
    if loss == "hinge":
        y = np.where(y > np.median(y), 1.0, -1.0)
        if flaw == "constant_y":
            y[:] = 1.0
    weights = np.ones(n)
    if weighted:
        weights = rng.exponential(size=n)
        weights[rng.random(n) < 0.15] = 0.0
        weights[0] = 1.0
    return Case(
        X=X,
        y=y,
        weights=weights,
        loss=loss,
        kernel=kernel,
        offset=offset,
        C=10 ** rng.uniform(*log_C),
        tau=float(rng.choice([0.01, 0.99, rng.uniform(0.05, 0.95)])),
        epsilon=float(rng.choice([0.0, 0.1, 0.5])),
        gamma=10 ** rng.uniform(-1.5, 0.5) / (d if kernel == "poly" else 1),
    )
