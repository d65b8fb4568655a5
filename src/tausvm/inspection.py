"""What a fitted model estimates, at which levels, and how good it is: for tables and reports.

One view for all estimators, alone, behind a selection of parameters or at the end of a pipeline.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import mean_pinball_loss

from .estimators.path_machine import PathMachine
from .losses import EpsilonInsensitive, SquaredEpsilonInsensitive
from .metrics import coverage, crossing_rate, mean_expectile_loss
from .selection import TauPathSVCCV
from .solvers import SolverResult
from .tabular.estimators import TabularRegressor

Array = NDArray[np.float64]

QUANTILE, EXPECTILE, LOCATION, CLASS, PATH = "quantile", "expectile", "location", "class", "path"

#: what the estimators estimate, by class name; a new estimator is one entry
FUNCTIONALS = {
    "SVR": LOCATION,
    "SVRCV": LOCATION,
    "QuantileSVR": QUANTILE,
    "QuantileSVRCV": QUANTILE,
    "ExpectileSVR": EXPECTILE,
    "ExpectileSVRCV": EXPECTILE,
    "JointQuantileSVR": QUANTILE,
    "JointQuantileSVRCV": QUANTILE,
    "JointExpectileSVR": EXPECTILE,
    "JointExpectileSVRCV": EXPECTILE,
    "JointSVR": LOCATION,
    "JointSVRCV": LOCATION,
    "LinearSVR": LOCATION,
    "LinearSVRCV": LOCATION,
    "LinearQuantileSVR": QUANTILE,
    "LinearQuantileSVRCV": QUANTILE,
    "LinearExpectileSVR": EXPECTILE,
    "LinearExpectileSVRCV": EXPECTILE,
    "TabularQuantileSVR": QUANTILE,
    "TabularExpectileSVR": EXPECTILE,
    "TauSVC": CLASS,
    "TauPathSVC": PATH,
    "TauPathSVCCV": PATH,
    "TauPathSVR": QUANTILE,
}

#: levels shown of a machine that has all of them
PATH_LEVELS = tuple(k / 20 for k in range(1, 20))
#: levels at which a path is certified for a report
CERTIFIED = (0.1, 0.25, 0.5, 0.75, 0.9)


def last_step(model: Any) -> Any:
    """The estimator itself, or the one at the end of a pipeline."""
    return model.steps[-1][1] if hasattr(model, "steps") else model


def transformers(model: Any) -> list[Any]:
    """The steps before a machine, in their order."""
    before = [step for _, step in model.steps[:-1]] if hasattr(model, "steps") else []
    last = last_step(model)
    return [*before, last.preparation_] if isinstance(last, TabularRegressor) else before


def functional(model: Any) -> str:
    """What a model estimates: one of the names above."""
    machine = last_step(model)
    for cls in type(machine).__mro__:
        if cls.__name__ in FUNCTIONALS:
            return FUNCTIONALS[cls.__name__]
    raise TypeError(f"model must be an estimator of tausvm, got {type(machine).__name__}")


def machines(model: Any) -> list[Any]:
    """The fitted machines: one, or one a level where each level has its own."""
    machine = last_step(model)
    best = getattr(machine, "best_estimator_", machine)
    return list(best) if isinstance(best, list) else [best]


def path_machine(model: Any) -> Any:
    """The machine that has every level, behind a selection of its parameters too."""
    machine = last_step(model)
    return machine.best_estimator_ if isinstance(machine, TauPathSVCCV) else machine


def has_path(model: Any) -> bool:
    """Whether a model has every level, asked for at prediction."""
    return isinstance(last_step(model), PathMachine | TauPathSVCCV)


def prepared(model: Any, X: Any) -> Any:
    """What the steps before the last one make of X."""
    if isinstance(model, TabularRegressor):
        return model.preparation_.transform(X)
    if not hasattr(model, "steps"):
        return X
    before = model[:-1].transform(X) if len(model.steps) > 1 else X
    return prepared(model.steps[-1][1], before)


def predictions(model: Any, X: Any) -> Any:
    """What a regressor predicts at its :func:`levels`."""
    if not has_path(model):
        return model.predict(X)
    return path_machine(model).predict(prepared(model, X), tau=levels(model))


def decisions(model: Any, X: Any, taus: Sequence[float]) -> Array:
    """The decision values of a path classifier, one column a level."""
    return np.asarray(path_machine(model).decision_function(prepared(model, X), tau=list(taus)))


def levels(model: Any) -> list[float]:
    """The levels τ, in the order of the predictions' columns; empty for a model without."""
    machine = last_step(model)
    if has_path(model):
        return list(PATH_LEVELS) if functional(model) == QUANTILE else []
    tau = getattr(machine, "tau", None)
    return [] if tau is None else [float(t) for t in np.atleast_1d(tau)]


def certificates(model: Any) -> list[SolverResult]:
    """The results of the solves, one a level or one for all; empty for averaged models."""
    results: list[SolverResult] = []
    if has_path(model):
        machine = path_machine(model)
        found = [machine.certificate(tau) for tau in CERTIFIED]
        return [replace(result, seconds=machine.result_.seconds) for result in found]
    for machine in machines(model):
        result = getattr(machine, "result_", None)
        if result is not None:
            results.extend(result if isinstance(result, list) else [result])
    return results


def support_counts(model: Any) -> list[int]:
    """The number of support vectors, one a level or one for all; empty for linear machines."""
    counts: list[int] = []
    if has_path(model):
        return [int(np.count_nonzero(path_machine(model).dual_coef(tau))) for tau in CERTIFIED]
    for machine in machines(model):
        found = getattr(machine, "n_support_", None)
        if found is not None:
            counts.extend(int(n) for n in np.atleast_1d(found))
    return counts


def chosen_parameters(model: Any) -> list[dict[str, Any]]:
    """C, γ and kernel of a selection, one a level or one for all; empty where nothing was chosen.

    A kernel that was given is not among them.
    """
    best = getattr(last_step(model), "best_params_", None)
    if best is None:
        return []
    return list(best) if isinstance(best, list) else [best]


def feature_names(model: Any, names: Sequence[str] | None = None) -> list[str]:
    """What the features are called that the last step sees.

    Parameters
    ----------
    model : fitted estimator
    names : sequence of str, optional
        Those of the last step's features where they are as many, else of X as given to the model.
    """
    machine = last_step(model)
    width = int(machine.n_features_in_)
    given = None if names is None else [str(name) for name in names]
    if given is not None and len(given) == width:
        return given
    if len(getattr(model, "steps", ())) > 1:
        try:
            found = model[:-1].get_feature_names_out(given)
        except (AttributeError, ValueError):  # a step without names, or names that do not fit
            found = []
        if len(found) == width:
            return [str(name) for name in found]
    if given is not None:
        raise ValueError(f"feature_names must have {width} names, got {len(given)}")
    known = getattr(machine, "feature_names_in_", None)
    return [f"feature {k}" for k in range(width)] if known is None else [str(n) for n in known]


@dataclass(frozen=True)
class LevelScore:
    """One level of a model on some rows.

    Attributes
    ----------
    tau : float or None
        None for a model without levels.
    loss : float
        The mean of the loss that the level minimises, without ε for quantiles and expectiles.
    coverage : float
        The share of targets at or below the prediction.
    observed : float
        What should be τ: the coverage of a quantile; for an expectile the share of the
        absolute deviations that lies below it.
    """

    tau: float | None
    loss: float
    coverage: float
    observed: float


def as_columns(predicted: ArrayLike) -> Array:
    """Predictions with one column a level."""
    values = np.asarray(predicted, dtype=np.float64)
    return values[:, None] if values.ndim == 1 else values


def observed_level(y: Array, columns: Array, estimated: str) -> Array:
    """What should be τ, for each column of predictions."""
    if estimated != EXPECTILE:
        return np.atleast_1d(coverage(y, columns))
    below = np.maximum(columns - y[:, None], 0.0).sum(axis=0)
    total = np.abs(columns - y[:, None]).sum(axis=0)
    return np.divide(below, total, out=np.full(len(total), 0.5), where=total > 0)


def score_levels(model: Any, y: ArrayLike, predicted: ArrayLike) -> list[LevelScore]:
    """The scores of what a regression model predicted, one a level."""
    estimated = functional(model)
    target = np.asarray(y, dtype=np.float64)
    columns = as_columns(predicted)
    taus: Sequence[float | None] = levels(model) or [None] * columns.shape[1]
    losses = [
        _loss(model, estimated, target, column, tau)
        for column, tau in zip(columns.T, taus, strict=True)
    ]
    covered = np.atleast_1d(coverage(target, columns))
    observed = observed_level(target, columns, estimated)
    return [
        LevelScore(tau, loss, float(share), float(level))
        for tau, loss, share, level in zip(taus, losses, covered, observed, strict=True)
    ]


def _loss(model: Any, estimated: str, y: Array, f: Array, tau: float | None) -> float:
    if tau is not None and estimated == QUANTILE:
        return float(mean_pinball_loss(y, f, alpha=tau))
    if tau is not None and estimated == EXPECTILE:
        return float(mean_expectile_loss(y, f, tau=tau))
    machine = last_step(model)
    squared = str(getattr(machine, "loss", "")).startswith("squared")
    epsilon = float(getattr(machine, "epsilon", 0.0))
    loss = SquaredEpsilonInsensitive(epsilon) if squared else EpsilonInsensitive(epsilon)
    return float(loss.value(y - f).mean())


def crossings(model: Any, predicted: ArrayLike) -> float | None:
    """The share of rows where levels cross; None for fewer than two levels."""
    taus = levels(model)
    if len(taus) < 2:
        return None
    return crossing_rate(as_columns(predicted), tau=taus)


def crossing_rows(model: Any, predicted: ArrayLike) -> int | None:
    """The number of rows where levels cross; None for fewer than two levels."""
    share = crossings(model, predicted)
    return None if share is None else round(share * len(as_columns(predicted)))


def rows_seen(model: Any, X: Any) -> tuple[int, bool]:
    """How many rows of X a model keeps from its fit, and whether it keeps all rows of that fit.

    A path keeps its rows. Other machines keep their support vectors alone, and linear ones none: a
    row that is not found may have been fitted.
    """
    here = _comparable(prepared(model, X))
    if here is None:
        return 0, False
    found = np.zeros(len(here), dtype=bool)
    whole = has_path(model)
    for machine in machines(model):
        if whole:
            kept = _comparable(getattr(getattr(machine, "_data", None), "X", None))
        else:
            kept = _comparable(getattr(machine, "support_vectors_", None))
        if kept is None or kept.dtype != here.dtype:
            whole = False
        else:
            found |= np.isin(here, kept)
    return int(found.sum()), whole


def _comparable(X: Any) -> NDArray[Any] | None:
    """Each row of numbers as one value that can be compared; None for what is no table of them."""
    if hasattr(X, "toarray") or getattr(X, "ndim", 0) != 2 or 0 in X.shape:
        return None
    try:
        rows = np.ascontiguousarray(np.asarray(X, dtype=np.float64) + 0.0)  # −0 is 0
    except (TypeError, ValueError):
        return None
    return rows.view([("", rows.dtype)] * rows.shape[1]).ravel()


@dataclass(frozen=True)
class Confusion:
    """Decisions of a classifier on some rows: counts, and what they say."""

    true_positive: int
    false_positive: int
    false_negative: int
    true_negative: int

    @classmethod
    def of(cls, actual: NDArray[np.bool_], decided: NDArray[np.bool_]) -> Confusion:
        """Count decisions against what was the case."""
        return cls(
            int(np.sum(actual & decided)),
            int(np.sum(~actual & decided)),
            int(np.sum(actual & ~decided)),
            int(np.sum(~actual & ~decided)),
        )

    @property
    def accuracy(self) -> float:
        total = self.true_positive + self.false_positive + self.false_negative + self.true_negative
        return (self.true_positive + self.true_negative) / max(total, 1)

    def cost(self, miss: float, false_alarm: float) -> float:
        """What the errors cost together."""
        return miss * self.false_negative + false_alarm * self.false_positive
