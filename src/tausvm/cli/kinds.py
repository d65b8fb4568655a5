"""The kinds of models that the command line fits: one entry each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tausvm

from .errors import InputError
from .settings import Settings


def grid_search(s: Settings, machine: Any) -> Any:
    """A search over C and γ; scikit-learn is loaded where one is wanted."""
    from . import tuning

    return tuning.grid_search(s, machine)


#: levels of a fan, where the kind takes several
FAN = (0.05, 0.25, 0.5, 0.75, 0.95)


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
    unused : tuple of str
        Options that mean nothing to it.
    learns : bool
        Whether its selection learns features.
    landmarks : bool
        Whether it goes by landmarks where rows are many.
    """

    name: str
    summary: str
    default_tau: tuple[float, ...]
    several: bool
    classifies: bool
    make: Callable[[Settings], Any]
    tune: Callable[[Settings], Any] | None = None
    losses: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    learns: bool = False
    landmarks: bool = False


def _quantile(s: Settings) -> Any:
    return tausvm.QuantileSVR(tau=s.levels, epsilon=s.zone, **s.approximable)


def _expectile(s: Settings) -> Any:
    return tausvm.ExpectileSVR(tau=s.levels, epsilon=s.zone, **s.approximable)


def _svr(s: Settings) -> Any:
    return tausvm.SVR(epsilon=s.tube, scale_C=True, **s.approximable)


def _svc(s: Settings) -> Any:
    return tausvm.TauSVC(tau=s.tau[0], **s.approximable)


def _path(s: Settings) -> Any:
    return tausvm.TauPathSVC(
        C=s.cost,
        kernel=s.one_kernel,
        gamma=s.gamma,
        tol=min(s.tol, 1e-6),
        time_limit=s.time_limit,
    )


def _joint(s: Settings) -> Any:
    quantiles = s.loss == "quantile"
    made = tausvm.JointQuantileSVR if quantiles else tausvm.JointExpectileSVR
    return made(tau=list(s.tau), epsilon=s.zone, **s.machine)


def _tuned_joint(s: Settings) -> Any:
    quantiles = s.loss == "quantile"
    made = tausvm.JointQuantileSVRCV if quantiles else tausvm.JointExpectileSVRCV
    return made(tau=list(s.tau), epsilon=s.zone, tol=s.tol, **s.kernel_grid)


def _tuned_path(s: Settings) -> Any:
    return tausvm.TauPathSVCCV(select_by=s.tau[0], tol=min(s.tol, 1e-6), **s.kernel_grid)


def _linear(s: Settings) -> Any:
    common: dict[str, Any] = {"C": s.cost, "tol": s.tol, "time_limit": s.time_limit}
    if s.loss == "svr":
        return tausvm.LinearSVR(epsilon=s.tube, scale_C=True, **common)
    made = tausvm.LinearQuantileSVR if s.loss == "quantile" else tausvm.LinearExpectileSVR
    return made(tau=s.levels, epsilon=s.zone, **common)


def _tuned_linear(s: Settings) -> Any:
    common: dict[str, Any] = {"tol": s.tol, "scale_C": True, **s.folded}
    if s.loss == "svr":
        return tausvm.LinearSVRCV(epsilon=s.tube, **common)
    made = tausvm.LinearQuantileSVRCV if s.loss == "quantile" else tausvm.LinearExpectileSVRCV
    return made(tau=s.levels, epsilon=s.zone, **common)


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            "quantile",
            "levels below which a share τ of the targets lies",
            default_tau=FAN,
            several=True,
            classifies=False,
            make=_quantile,
            tune=lambda s: tausvm.QuantileSVRCV(tau=s.levels, epsilon=s.zone, **s.selection),
            learns=True,
            landmarks=True,
        ),
        Kind(
            "expectile",
            "means that weigh what lies above by τ, below by 1 − τ",
            default_tau=FAN,
            several=True,
            classifies=False,
            make=_expectile,
            tune=lambda s: tausvm.ExpectileSVRCV(tau=s.levels, epsilon=s.zone, **s.selection),
            learns=True,
            landmarks=True,
        ),
        Kind(
            "svr",
            "one typical value, errors below ε forgiven",
            default_tau=(),
            several=False,
            classifies=False,
            make=_svr,
            tune=lambda s: tausvm.SVRCV(epsilon=s.tube, scale_C=True, **s.selection),
            learns=True,
            landmarks=True,
        ),
        Kind(
            "svc",
            "yes or no: whether the probability of the positive class exceeds τ",
            default_tau=(0.5,),
            several=False,
            classifies=True,
            make=_svc,
            tune=lambda s: grid_search(s, _svc(s)),
            unused=("--epsilon",),
            landmarks=True,
        ),
        Kind(
            "joint",
            "several levels at once, which know of each other and do not cross",
            default_tau=FAN,
            several=True,
            classifies=False,
            make=_joint,
            tune=_tuned_joint,
            losses=("quantile", "expectile"),
        ),
        Kind(
            "path",
            "yes or no at every τ from one fit: the level is chosen when it is used",
            default_tau=(0.5,),
            several=False,
            classifies=True,
            make=_path,
            tune=_tuned_path,
            unused=("--epsilon",),
        ),
        Kind(
            "linear",
            "levels that are linear in the features, for many rows or sparse ones",
            default_tau=FAN,
            several=True,
            classifies=False,
            make=_linear,
            tune=_tuned_linear,
            losses=("quantile", "expectile", "svr"),
            unused=("--kernel", "--gamma"),
        ),
    )
}


def kind_named(name: str) -> Kind:
    """A kind by name; the error names the option and what there is."""
    if name not in KINDS:
        raise InputError(f"--kind: must be one of {', '.join(KINDS)}, got {name!r}")
    return KINDS[name]
