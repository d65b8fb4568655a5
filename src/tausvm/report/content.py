"""What a report tells: everything the page shows, as plain numbers and words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import roc_auc_score
from sklearn.utils.validation import check_consistent_length

from .. import inspection
from ..inspection import CLASS, LOCATION, PATH, QUANTILE
from .features import describe_columns, fans, order_fan, rounded
from .words import (
    HEADINGS,
    certificate_words,
    fitted_words,
    learned_words,
    mean_words,
    meaning,
)

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PageSettings:
    """How much a page holds."""

    #: rows whose predictions it holds, drawn at random where there are more: 0.3 MB with 9 levels
    rows: int = 4000
    #: gap checks shown of a solve: more than pixels that tell them apart
    trace: int = 200
    #: thresholds of a classifier with one level: a slider's places
    thresholds: int = 201
    #: levels of a path are the multiples of one over this: half a per cent each
    levels: int = 200
    #: learned features shown, those first that count most: a list that is read
    learned: int = 30
    #: bars of the histogram of decision values
    bars: int = 40


@dataclass(frozen=True)
class Telling:
    """What the caller knows of model and rows, beside themselves.

    Attributes
    ----------
    target_name : str or None
    feature_names : list of str or None
    classes : list or None
        Names of the negative and the positive class.
    fitted_rows : int or None
        How many of the rows were fitted, where that is known.
    costs : (float, float)
        Of a missed positive and of a false alarm, to begin with; None for those of the level.
    """

    target_name: str | None = None
    feature_names: list[str] | None = None
    classes: list[Any] | None = None
    fitted_rows: int | None = None
    costs: tuple[float, float] | None = None


def collect(model: Any, X: Any, y: ArrayLike, telling: Telling) -> dict[str, Any]:
    """Everything that the page shows."""
    estimated = inspection.functional(model)
    target = np.asarray(y)
    if target.ndim != 1:
        raise ValueError(f"a report is about one target, got y of shape {target.shape}")
    check_consistent_length(X, target)
    costs = check_costs(telling.costs, estimated)
    columns, described = describe_columns(X, telling.feature_names)
    content: dict[str, Any] = {
        "kind": estimated,
        "heading": HEADINGS[estimated].format(telling.target_name or "the target"),
        "target": telling.target_name or "target",
        "meaning": meaning(estimated),
        "data": {"rows": len(target), "features": int(X.shape[1]), "columns": described},
        "fitted": fitted_told(model, X, telling.fitted_rows),
        "parameters": _parameters(model),
        "chosen": inspection.chosen_parameters(model),
        "learned": _learned(model, columns),
        **_certificates(model),
    }
    if estimated in {CLASS, PATH}:
        content |= _classification(model, X, target, telling.classes)
        # the costs for which a level is the best one: their sum is 2
        own = (2 * (1 - content["tau"]), 2 * content["tau"])
        content["costs"] = list(costs or own)
    else:
        content |= _regression(model, X, target.astype(np.float64), columns)
    return content


def check_costs(costs: tuple[float, float] | None, estimated: str) -> tuple[float, float] | None:
    """The costs of the two errors, which must be positive; only classifiers have them."""
    if costs is None:
        return None
    if estimated not in {CLASS, PATH}:
        raise ValueError(f"costs are for classifiers, this model estimates a {estimated}")
    miss, alarm = (float(cost) for cost in costs)
    if not (0 < miss < np.inf and 0 < alarm < np.inf):
        raise ValueError(f"costs must be finite numbers above 0, got {tuple(costs)}")
    return miss, alarm


def fitted_told(model: Any, X: Any, fitted: int | None) -> dict[str, Any]:
    """How many of the rows were fitted, as far as it is known, and what to say about it."""
    rows = int(X.shape[0])
    least = fitted or 0
    if fitted is None:
        least, whole = inspection.rows_seen(model, X)
        fitted = least if whole else None
    if fitted == 0:
        state = "none"
    elif fitted is None and not least:
        state = "unknown"
    else:
        state = "all" if least == rows else "some"
    return {"state": state, "rows": fitted, "words": fitted_words(fitted, rows, least)}


def _regression(model: Any, X: Any, y: Array, columns: list[str]) -> dict[str, Any]:
    predictions = inspection.as_columns(inspection.predictions(model, X))
    taus = inspection.levels(model)
    rising = np.argsort(taus, kind="stable") if taus else np.arange(predictions.shape[1])
    scored = inspection.score_levels(model, y, predictions)
    kept = _sample(len(y), PageSettings().rows)
    levels, ordered = predictions[:, rising], [taus[k] for k in rising] if taus else []
    estimated = inspection.functional(model)
    drawn = [order_fan(y[kept], levels[kept]), *fans(model, X, kept, columns, rising)]
    spread = float(np.ptp(np.concatenate([y[kept], levels[kept].ravel()])))
    for fan in drawn:
        fan["curves"] = rounded(fan["curves"], spread)
    return {
        "levels": ordered,
        "epsilon": float(getattr(inspection.last_step(model), "epsilon", 0.0)),
        "squared": str(getattr(inspection.last_step(model), "loss", "")).startswith("squared"),
        "scores": [vars(scored[k]) for k in rising],
        "calibration": _calibration(y, levels, ordered, estimated),
        "crossings": inspection.crossing_rows(model, predictions),
        "rows": {
            "y": rounded(y[kept], spread),
            "levels": rounded(levels[kept].T, spread),
            "sampled": len(kept) < len(y),
        },
        "fans": drawn,
    }


def _calibration(
    y: Array, levels: Array, taus: list[float], estimated: str
) -> list[dict[str, Any]]:
    """Nominal against observed levels, and where 95 % of calibrated models would be."""
    if not taus or estimated == LOCATION:
        return []
    observed = inspection.observed_level(y, levels, estimated)
    rows = []
    for tau, level in zip(taus, observed, strict=True):
        # of quantiles alone the count below is binomial, whatever the distribution
        band = 1.96 * np.sqrt(tau * (1 - tau) / len(y)) if estimated == QUANTILE else None
        rows.append({"tau": tau, "observed": level, "band": band})
    return rows


def _classification(
    model: Any, X: Any, y: NDArray[Any], classes: list[Any] | None
) -> dict[str, Any]:
    machine = inspection.last_step(model)
    known = list(machine.classes_)
    if len(known) != 2:
        raise ValueError(f"a report is about two classes, got a model of {len(known)}")
    actual = y == known[1]
    names = classes if classes is not None else known
    content = {
        "classes": [str(name) for name in names],
        "positives": int(actual.sum()),
        "negatives": int((~actual).sum()),
    }
    decided = _path_decisions if inspection.has_path(model) else _threshold_decisions
    return content | decided(model, X, actual)


def _threshold_decisions(model: Any, X: Any, actual: NDArray[np.bool_]) -> dict[str, Any]:
    """A classifier of one level: the threshold on its decision value moves."""
    values = model.decision_function(X)
    grid = _thresholds(values)
    return {
        "tau": inspection.levels(model)[0],
        "axis_values": grid,
        "start": int(np.argmin(np.abs(grid))),
        "thresholds": grid,
        "auc": _auc(actual, values),
        **_counts(actual, values[None, :] > grid[:, None]),
        "histogram": _histogram(values, actual),
    }


def _path_decisions(model: Any, X: Any, actual: NDArray[np.bool_]) -> dict[str, Any]:
    """A classifier of all levels: the level moves, and with it the whole function."""
    machine = inspection.path_machine(model)
    settings = PageSettings()
    taus = np.arange(1, settings.levels) / settings.levels
    decided = inspection.decisions(model, X, taus.tolist()).T > 0
    kept = _sample(len(actual), settings.rows)
    probability = model.predict_proba(_taken(X, kept))[:, 1]
    return {
        "tau": 0.5,
        "axis_values": taus,
        "start": settings.levels // 2 - 1,
        "thresholds": np.array([-machine.intercept(float(tau))[0] for tau in taus]),
        "auc": _auc(actual[kept], probability),
        **_counts(actual, decided),
        "histogram": _histogram(probability, actual[kept]),
    }


def _auc(actual: NDArray[np.bool_], values: Array) -> float | None:
    """The chance that a positive row has a larger value than a negative one; ties count half."""
    if actual.all() or not actual.any():
        return None
    return float(roc_auc_score(actual, values))


def _taken(X: Any, rows: NDArray[np.int64]) -> Any:
    """Some rows of an array, a matrix or a frame."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _thresholds(values: Array) -> Array:
    """From below all decision values to above all, with 0 among them."""
    spread = np.quantile(values, np.linspace(0, 1, PageSettings().thresholds))
    edge = 1e-6 + 0.01 * float(np.ptp(values))
    return np.unique(np.concatenate([[spread[0] - edge], spread, [0.0]]))


def _counts(actual: NDArray[np.bool_], decided: NDArray[np.bool_]) -> dict[str, Any]:
    """The four counts along the axis; ``decided`` has one row a point of it."""
    true_positive = (decided & actual).sum(axis=1)
    false_positive = (decided & ~actual).sum(axis=1)
    return {
        "true_positive": true_positive,
        "false_positive": false_positive,
        "false_negative": int(actual.sum()) - true_positive,
        "true_negative": int((~actual).sum()) - false_positive,
    }


def _histogram(values: Array, actual: NDArray[np.bool_]) -> dict[str, Any]:
    edges = np.histogram_bin_edges(values, bins=PageSettings().bars)
    return {
        "edges": edges,
        "positive": np.histogram(values[actual], edges)[0],
        "negative": np.histogram(values[~actual], edges)[0],
    }


def _parameters(model: Any) -> list[list[str]]:
    machine = inspection.last_step(model)
    shown = machine.get_params(deep=False)
    return [["estimator", type(machine).__name__], *([k, str(v)] for k, v in shown.items())]


def _learned(model: Any, columns: list[str]) -> dict[str, Any] | None:
    """What the features count in the metric of a selection; None where none was learned."""
    machine = inspection.last_step(model)
    chosen = getattr(machine, "machine_", machine)  # behind the preparation of a table
    if not getattr(chosen, "learned_", False):
        return None
    names = inspection.feature_names(model, columns or None)
    shares = machine.feature_importances_
    order = np.argsort(-shares, kind="stable")[: PageSettings().learned]
    return {
        "words": learned_words(chosen.feature_metric_.ndim == 2, shares),
        "features": len(shares),
        "shares": [[names[k], float(shares[k])] for k in order],
    }


def _certificates(model: Any) -> dict[str, Any]:
    """What is proved of the fit: a sentence, and the figures of every solve."""
    results = inspection.certificates(model)
    if not results:
        machine = inspection.last_step(model)
        told = getattr(machine, "members_", None)
        if not told:
            return {"certificate": "This model has no certificate.", "solves": []}
        levels = told if isinstance(told[0], list) else [told]
        words = mean_words(sum(map(len, levels)), float(np.max(machine.dual_gap_)))
        return {"certificate": words, "solves": []}
    taus: list[float | None] = list(
        inspection.CERTIFIED if inspection.has_path(model) else inspection.levels(model)
    )
    if len(taus) != len(results):
        taus = [None] * len(results)
    supports = inspection.support_counts(model)
    most = PageSettings().trace
    solves = []
    for k, (tau, result) in enumerate(zip(taus, results, strict=True)):
        trace = result.trace[:: max(1, -(-len(result.trace) // most))]
        solves.append(
            {
                "tau": tau,
                "gap": result.dual_gap,
                "primal": result.primal_objective,
                "dual": result.dual_objective,
                "status": result.status.value.replace("_", " "),
                "seconds": result.seconds,
                "iterations": result.n_iter,
                "solver": result.solver,
                "support": supports[k] if k < len(supports) else None,
                "trace": [[p.seconds, p.gap] for p in trace if p.gap > 0],
            }
        )
    return {"certificate": certificate_words(results), "solves": solves}


def _sample(n: int, most: int) -> NDArray[np.int64]:
    """All rows, or as many as allowed, drawn at random and the same ones every time."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, size=most, replace=False))
