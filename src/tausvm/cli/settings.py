"""What the options say about a model, whatever its kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Settings:
    """What the options say about a model.

    Attributes
    ----------
    tau : tuple of float
    spread : float
        The standard deviation of the target, the unit of ε where it is not given.
    C, epsilon : float or None
        None for 1, and for an ε that follows from the spread.
    kernel : str
        "auto" for RBF, and where a selection of its own chooses C and γ for the best of several.
    feature_metric : str or None
        Of the selections.
    loss : str
        For the kinds with several: which levels they estimate.
    """

    tau: tuple[float, ...]
    spread: float = 1.0
    C: float | None = None
    gamma: str | float = "scale"
    epsilon: float | None = None
    kernel: str = "auto"
    feature_metric: str | None = "auto"
    tol: float = 1e-4
    time_limit: float | None = None
    loss: str = "quantile"
    folds: int = 5
    grid: int = 10
    jobs: int | None = None
    seed: int = 0

    @property
    def cost(self) -> float:
        """C, which counts in spreads of the target where a loss grows linearly."""
        return 1.0 if self.C is None else self.C

    @property
    def levels(self) -> float | list[float]:
        """τ as estimators take it."""
        return self.tau[0] if len(self.tau) == 1 else list(self.tau)

    @property
    def tube(self) -> float:
        """ε of a machine that forgives small errors, by default a tenth of the spread."""
        return self.epsilon if self.epsilon is not None else 0.1 * self.spread

    @property
    def zone(self) -> float:
        """ε of a machine for levels, by default none."""
        return self.epsilon or 0.0

    @property
    def one_kernel(self) -> str:
        """The kernel of a machine by itself."""
        return "rbf" if self.kernel == "auto" else self.kernel

    @property
    def machine(self) -> dict[str, Any]:
        """Parameters of the kernel machines."""
        return {
            "C": self.cost,
            "kernel": self.one_kernel,
            "gamma": self.gamma,
            "tol": self.tol,
            "time_limit": self.time_limit,
        }

    @property
    def approximable(self) -> dict[str, Any]:
        """Parameters of the kernel machines that go by landmarks where rows are many."""
        return {**self.machine, "approximation": "auto"}

    @property
    def folded(self) -> dict[str, Any]:
        """Parameters of every estimator that chooses C."""
        return {
            "Cs": self.grid,
            "cv": self.folds,
            "n_jobs": self.jobs,
            "random_state": self.seed,
            "time_limit": self.time_limit,
        }

    @property
    def kernel_grid(self) -> dict[str, Any]:
        """Parameters of those that fit all C and γ of a grid: half as many γ."""
        return {**self.folded, "gammas": max(self.grid // 2, 2), "kernel": self.one_kernel}

    @property
    def selection(self) -> dict[str, Any]:
        """Parameters of those that choose C and γ in a race, and features."""
        return {
            **self.folded,
            "kernel": self.kernel,
            "feature_metric": self.feature_metric,
            "tol": self.tol,
            "gammas": self.grid,
            "refit": True,  # with certificates, and C and γ of one machine to tell
        }
