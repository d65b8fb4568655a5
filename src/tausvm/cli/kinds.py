"""The kinds of models that the command line fits: one entry each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold

import tausvm

from .. import inspection
from .errors import InputError

#: levels of a fan, where the kind takes several
FAN = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Settings:
    """What the options say about a model.

    Attributes
    ----------
    tau : tuple of float
    spread : float
        The standard deviation of the target, the unit of C and ε where they are not given.
    C, epsilon : float or None
        None for a value that follows from the spread.
    loss : str
        For the kinds with several: which levels they estimate.
    """

    tau: tuple[float, ...]
    spread: float = 1.0
    C: float | None = None
    gamma: str | float = "scale"
    epsilon: float | None = None
    kernel: str = "rbf"
    tol: float = 1e-4
    time_limit: float | None = None
    loss: str = "quantile"
    folds: int = 5
    grid: int = 10
    jobs: int | None = None
    seed: int = 0

    def cost(self, *, linear: bool) -> float:
        """C, by default as C = 1 on a target of unit spread."""
        return self.C if self.C is not None else (self.spread if linear else 1.0)

    @property
    def kernel_parameters(self) -> dict[str, Any]:
        return {"kernel": self.kernel, "gamma": self.gamma, "tol": self.tol}

    @property
    def selection(self) -> dict[str, Any]:
        """Parameters of the estimators that choose C and γ."""
        return {
            "kernel": self.kernel,
            "tol": self.tol,
            "cv": self.folds,
            "Cs": self.grid,
            "gammas": self.grid,
            "n_jobs": self.jobs,
            "random_state": self.seed,
            "refit": True,  # with certificates, and C and γ of one machine to tell
        }


@dataclass(frozen=True)
class Kind:
    """A kind of model.

    Attributes
    ----------
    name, summary : str
    default_tau : tuple of float
        Empty for a kind without levels.
    several : bool
        Whether it takes several levels.
    classifies : bool
    make : callable
        The estimator for some settings.
    tune : callable or None
        The estimator that chooses its C and γ.
    losses : tuple of str
        What ``--loss`` may be; empty where there is no choice.
    """

    name: str
    summary: str
    default_tau: tuple[float, ...]
    several: bool
    classifies: bool
    make: Callable[[Settings], Any]
    tune: Callable[[Settings], Any] | None = None
    losses: tuple[str, ...] = ()


def _levels(settings: Settings) -> float | list[float]:
    return settings.tau[0] if len(settings.tau) == 1 else list(settings.tau)


def _svr_epsilon(settings: Settings) -> float:
    return settings.epsilon if settings.epsilon is not None else 0.1 * settings.spread


def _quantile(s: Settings) -> Any:
    return tausvm.QuantileSVR(
        tau=_levels(s),
        C=s.cost(linear=True),
        epsilon=s.epsilon or 0.0,
        time_limit=s.time_limit,
        **s.kernel_parameters,
    )


def _expectile(s: Settings) -> Any:
    return tausvm.ExpectileSVR(
        tau=_levels(s),
        C=s.cost(linear=False),
        epsilon=s.epsilon or 0.0,
        time_limit=s.time_limit,
        **s.kernel_parameters,
    )


def _svr(s: Settings) -> Any:
    return tausvm.SVR(
        C=s.cost(linear=True),
        epsilon=_svr_epsilon(s),
        time_limit=s.time_limit,
        **s.kernel_parameters,
    )


def _joint_class(s: Settings) -> Any:
    return tausvm.JointQuantileSVR if s.loss == "quantile" else tausvm.JointExpectileSVR


def _joint(s: Settings) -> Any:
    return _joint_class(s)(
        tau=list(s.tau),
        C=s.cost(linear=s.loss == "quantile"),
        epsilon=s.epsilon or 0.0,
        rearrange=True,
        time_limit=s.time_limit,
        **s.kernel_parameters,
    )


def _path(s: Settings) -> Any:
    return tausvm.TauPathSVC(
        C=s.cost(linear=False), kernel=s.kernel, gamma=s.gamma, tol=min(s.tol, 1e-6)
    )


def _linear(s: Settings) -> Any:
    common: dict[str, Any] = {"C": s.cost(linear=s.loss != "expectile"), "tol": s.tol}
    common["time_limit"] = s.time_limit
    if s.loss == "svr":
        return tausvm.LinearSVR(epsilon=_svr_epsilon(s), **common)
    made = tausvm.LinearQuantileSVR if s.loss == "quantile" else tausvm.LinearExpectileSVR
    return made(tau=_levels(s), epsilon=s.epsilon or 0.0, **common)


def _tuned_linear(s: Settings) -> Any:
    if s.loss != "svr":
        return _searched(s, _linear(s), linear=s.loss == "quantile")
    return tausvm.LinearSVRCV(
        Cs=s.grid,
        cv=s.folds,
        epsilon=_svr_epsilon(s),
        tol=s.tol,
        n_jobs=s.jobs,
        random_state=s.seed,
    )


def _searched(s: Settings, machine: Any, *, linear: bool) -> Any:
    """A search over C, and γ where the machine has one, for those without one of their own."""
    around = 10.0 ** np.linspace(-1, 2, max(s.grid, 2))
    grid = {"C": list(around * s.cost(linear=linear))}
    if hasattr(machine, "gamma") and s.kernel != "linear":
        grid["gamma"] = list(10.0 ** np.linspace(-2, 0, max(s.grid // 2, 2)))
    if is_classifier(machine):
        cv = StratifiedKFold(s.folds, shuffle=True, random_state=s.seed)
        return GridSearchCV(machine, grid, cv=cv, n_jobs=s.jobs, scoring=_CostScore(s.tau[0]))
    cv = KFold(s.folds, shuffle=True, random_state=s.seed)
    return GridSearchCV(machine, grid, cv=cv, n_jobs=s.jobs, scoring=_level_score)


def _level_score(machine: Any, X: Any, y: Any) -> float:
    """Minus the mean of the losses of the levels."""
    scored = inspection.score_levels(machine, y, inspection.predictions(machine, X))
    return -float(np.mean([level.loss for level in scored]))


@dataclass(frozen=True)
class _CostScore:
    """Minus what the errors cost at a level."""

    tau: float

    def __call__(self, machine: Any, X: Any, y: Any) -> float:
        given = {"tau": self.tau} if inspection.has_path(machine) else {}
        decided = machine.predict(X, **given)
        counts = inspection.Confusion.of(np.asarray(y) == 1, decided == 1)
        return -counts.cost(2 * (1 - self.tau), 2 * self.tau) / len(y)


def _svc(s: Settings) -> Any:
    return tausvm.TauSVC(
        tau=s.tau[0],
        C=s.cost(linear=False),
        time_limit=s.time_limit,
        **s.kernel_parameters,
    )


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            "quantile",
            "levels below which a share τ of the targets lies",
            FAN,
            True,
            False,
            _quantile,
            lambda s: tausvm.QuantileSVRCV(tau=_levels(s), epsilon=s.epsilon or 0.0, **s.selection),
        ),
        Kind(
            "expectile",
            "means that weigh what lies above by τ, below by 1 − τ",
            FAN,
            True,
            False,
            _expectile,
            lambda s: tausvm.ExpectileSVRCV(
                tau=_levels(s), epsilon=s.epsilon or 0.0, **s.selection
            ),
        ),
        Kind(
            "svr",
            "one typical value, errors below ε forgiven",
            (),
            False,
            False,
            _svr,
            lambda s: tausvm.SVRCV(epsilon=_svr_epsilon(s), **s.selection),
        ),
        Kind(
            "svc",
            "yes or no: whether the probability of the positive class exceeds τ",
            (0.5,),
            False,
            True,
            _svc,
            lambda s: _searched(s, _svc(s), linear=False),
        ),
        Kind(
            "joint",
            "several levels at once, which know of each other and do not cross",
            FAN,
            True,
            False,
            _joint,
            lambda s: _searched(s, _joint(s), linear=s.loss == "quantile"),
            ("quantile", "expectile"),
        ),
        Kind(
            "path",
            "yes or no at every τ from one fit: the level is chosen when it is used",
            (0.5,),
            False,
            True,
            _path,
            lambda s: _searched(s, _path(s), linear=False),
        ),
        Kind(
            "linear",
            "levels that are linear in the features, for many rows or sparse ones",
            FAN,
            True,
            False,
            _linear,
            _tuned_linear,
            ("quantile", "expectile", "svr"),
        ),
    )
}


def kind_named(name: str) -> Kind:
    """A kind by name; the error names the option and what there is."""
    if name not in KINDS:
        raise InputError(f"--kind: must be one of {', '.join(KINDS)}, got {name!r}")
    return KINDS[name]
