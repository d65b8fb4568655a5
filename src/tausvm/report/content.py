"""What a report tells: everything the page shows, as plain numbers and words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length

from .. import inspection
from ..inspection import CLASS, LOCATION, PATH, QUANTILE
from .features import describe_columns, fans, order_fan
from .words import HEADINGS, certificate_words, learned_words, mean_words, meaning

Array = NDArray[np.float64]

#: rows whose predictions the page holds, drawn at random where there are more
MAX_ROWS = 4000
#: gap checks shown of a solve
MAX_TRACE = 200
#: thresholds of a classifier with one level
THRESHOLDS = 201
#: levels of a path are the multiples of 1 / LEVELS
LEVELS = 200
#: learned features shown, those first that count most
MAX_LEARNED = 30


def collect(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    target_name: str | None,
    feature_names: list[str] | None,
    classes: list[Any] | None,
) -> dict[str, Any]:
    """Everything that the page shows."""
    estimated = inspection.functional(model)
    target = np.asarray(y)
    if target.ndim != 1:
        raise ValueError(f"a report is about one target, got y of shape {target.shape}")
    check_consistent_length(X, target)
    columns, described = describe_columns(X, feature_names)
    content: dict[str, Any] = {
        "kind": estimated,
        "heading": HEADINGS[estimated].format(target_name or "the target"),
        "target": target_name or "target",
        "meaning": meaning(estimated),
        "data": {"rows": len(target), "features": int(X.shape[1]), "columns": described},
        "parameters": _parameters(model),
        "chosen": inspection.chosen_parameters(model),
        "learned": _learned(model, columns),
        "certificates": _certificates(model),
        "mean": _mean(model),
    }
    if estimated in {CLASS, PATH}:
        content |= _classification(model, X, target, classes)
    else:
        content |= _regression(model, X, target.astype(np.float64), columns)
    return content


def _regression(model: Any, X: Any, y: Array, columns: list[str]) -> dict[str, Any]:
    predictions = inspection.as_columns(inspection.predictions(model, X))
    taus = inspection.levels(model)
    rising = np.argsort(taus, kind="stable") if taus else np.arange(predictions.shape[1])
    scored = inspection.score_levels(model, y, predictions)
    kept = _sample(len(y), MAX_ROWS)
    levels, ordered = predictions[:, rising], [taus[k] for k in rising] if taus else []
    estimated = inspection.functional(model)
    return {
        "levels": ordered,
        "epsilon": float(getattr(inspection.last_step(model), "epsilon", 0.0)),
        "squared": str(getattr(inspection.last_step(model), "loss", "")).startswith("squared"),
        "scores": [vars(scored[k]) for k in rising],
        "calibration": _calibration(y, levels, ordered, estimated),
        "crossings": inspection.crossings(model, predictions),
        "rows": {"y": y[kept], "levels": levels[kept].T, "sampled": len(kept) < len(y)},
        "fans": [
            order_fan(y[kept], levels[kept]),
            *fans(model, X, y, kept, columns, rising),
        ],
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
        **_counts(actual, values[None, :] > grid[:, None]),
        "histogram": _histogram(values, actual),
    }


def _path_decisions(model: Any, X: Any, actual: NDArray[np.bool_]) -> dict[str, Any]:
    """A classifier of all levels: the level moves, and with it the whole function."""
    machine = inspection.last_step(model)
    taus = np.arange(1, LEVELS) / LEVELS
    decided = inspection.decisions(model, X, taus.tolist()).T > 0
    kept = _sample(len(actual), MAX_ROWS)
    return {
        "tau": 0.5,
        "axis_values": taus,
        "start": LEVELS // 2 - 1,
        "thresholds": np.array([-machine.intercept(float(tau))[0] for tau in taus]),
        "kinks": int(machine.n_kinks_),
        **_counts(actual, decided),
        "histogram": _histogram(model.predict_proba(_taken(X, kept))[:, 1], actual[kept]),
    }


def _taken(X: Any, rows: NDArray[np.int64]) -> Any:
    """Some rows of an array, a matrix or a frame."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _thresholds(values: Array) -> Array:
    """From below all decision values to above all, with 0 among them."""
    spread = np.quantile(values, np.linspace(0, 1, THRESHOLDS))
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
    edges = np.histogram_bin_edges(values, bins=40)
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
    if not getattr(machine, "learned_", False):
        return None
    names = inspection.feature_names(model, columns or None)
    shares = machine.feature_importances_
    order = np.argsort(-shares, kind="stable")[:MAX_LEARNED]
    return {
        "words": learned_words(machine.feature_metric_.ndim == 2, shares),
        "features": len(shares),
        "shares": [[names[k], float(shares[k])] for k in order],
    }


def _certificates(model: Any) -> list[dict[str, Any]]:
    results = inspection.certificates(model)
    taus: list[float | None] = list(
        inspection.CERTIFIED if inspection.has_path(model) else inspection.levels(model)
    )
    if len(taus) != len(results):
        taus = [None] * len(results)
    supports = inspection.support_counts(model)
    told = []
    for k, (tau, result) in enumerate(zip(taus, results, strict=True)):
        trace = result.trace[:: max(1, -(-len(result.trace) // MAX_TRACE))]
        told.append(
            {
                "tau": tau,
                "gap": result.dual_gap,
                "primal": result.primal_objective,
                "dual": result.dual_objective,
                "status": result.status.value,
                "seconds": result.seconds,
                "iterations": result.n_iter,
                "solver": result.solver,
                "support": supports[k] if k < len(supports) else None,
                "words": certificate_words(result, tau),
                "trace": [[p.seconds, p.gap] for p in trace if p.gap > 0],
            }
        )
    return told


def _mean(model: Any) -> str | None:
    """What certifies a mean of machines; None for other models."""
    machine = inspection.last_step(model)
    told = getattr(machine, "members_", None)
    if not told:
        return None
    levels = told if isinstance(told[0], list) else [told]
    return mean_words(sum(map(len, levels)), float(np.max(machine.dual_gap_)))


def _sample(n: int, most: int) -> NDArray[np.int64]:
    """All rows, or as many as allowed, drawn at random and the same ones every time."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, size=most, replace=False))
