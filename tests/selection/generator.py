"""Data sets as people have them, and what their machines are worth by this file's own code."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.spatial.distance import cdist

from tausvm import SVRCV, ExpectileSVRCV, QuantileSVRCV
from tausvm.kernels import mapped

EPSILON = np.finfo(float).eps
#: of kernels exp(−γ·distance), as SciPy names them
DISTANCES = {"rbf": "sqeuclidean", "laplacian": "cityblock", "exponential": "euclidean"}


def features(rng, n):
    """Raw units, integers, copies and near-copies, constant columns, one column or several."""
    X = rng.normal(size=(n, int(rng.integers(1, 5))))
    kind = rng.integers(0, 6)
    if kind == 1:
        X = X * 10.0 ** rng.integers(-4, 5, size=X.shape[1])
    elif kind == 2:
        X = np.round(2 * X)
    elif kind == 3:
        X = X[rng.integers(0, n // 3 + 1, n)]
    elif kind == 4:
        X = X[rng.integers(0, n // 2 + 1, n)] + 1e-9 * X
    elif kind == 5:
        X[:, 0] = 7.0
    return X


def targets(rng, X):
    """Smooth with or without noise, integers, almost all equal, in any unit and of any mean."""
    signal = np.sin(2 * X[:, -1] / max(np.abs(X[:, -1]).max(), 1e-300))
    y = signal + rng.choice([0.0, 0.05, 0.5]) * rng.standard_t(3, len(X))
    kind = rng.integers(0, 4)
    if kind == 1:
        y = np.round(3 * y)
    elif kind == 2:
        y = np.where(rng.uniform(size=len(X)) < 0.05, y, 0.0)
    unit = 10.0 ** rng.integers(-12, 13)
    return unit * (y + rng.choice([0.0, 10.0, 1e6]))


def case(seed):
    """A selection and its data: (estimator, X, y, weights)."""
    rng = np.random.default_rng(seed)
    n = int(np.exp(rng.uniform(np.log(20), np.log(300))))
    X = features(rng, n)
    y = targets(rng, X)
    weight = None if rng.uniform() < 0.6 else 10.0 ** rng.uniform(-5, 5, n)
    common = {
        "Cs": np.sort(10.0 ** rng.uniform(-3, 4, 2)),
        "gammas": np.sort(10.0 ** rng.uniform(-3, 2, 2) / (X.var() or 1.0)),
        "cv": int(rng.integers(2, 6)),
        "fit_intercept": bool(rng.uniform() < 0.8),
        "refit": rng.choice(["committee", "committee", "average", "alone"]),
        "clip": rng.choice(["no", "range"]),
        "scale_C": True,
        "time_limit": 30.0,  # for problems that no solver gets far with: a warning is an answer
    }
    common["refit"] = True if common["refit"] == "alone" else str(common["refit"])
    common["clip"] = None if common["clip"] == "no" else "range"
    metric = str(rng.choice(["auto", "auto", "diagonal", "full", "none"]))
    common["feature_metric"] = None if metric == "none" else metric
    common["kernel"] = str(rng.choice(["auto", "auto", "rbf", "laplacian", "exponential"]))
    if metric != "none":  # γ is for features of equal spread
        common["gammas"] = common["gammas"] * (X.var() or 1.0)
    spread = max(float(y.std()), 1e-300)
    kind = rng.integers(0, 4)
    if kind == 0:
        return QuantileSVRCV(tau=[0.1, 0.7], **common), X, y, weight
    if kind == 1:
        epsilon = 0.1 * spread
        return QuantileSVRCV(tau=0.3, epsilon=epsilon, **common), X, y, weight
    if kind == 2:
        return ExpectileSVRCV(tau=[0.2, 0.5], **common), X, y, weight
    loss = str(rng.choice(["epsilon_insensitive", "squared_epsilon_insensitive"]))
    return SVRCV(epsilon=0.1 * spread, loss=loss, **common), X, y, weight


def slopes(machine):
    """Of the loss for residuals above and below the tube; whether it is squared."""
    if hasattr(machine, "tau"):
        squared = type(machine).__name__.startswith("Expectile")
        return machine.tau, 1.0 - machine.tau, squared
    return 1.0, 1.0, machine.loss.startswith("squared")


def true_gap(machine, X, y, weight):
    """The relative duality gap of what ``predict(raw=True)`` says on some rows.

    All is in standard deviations of y, so that nothing over- or underflows. The second number is
    what the rounding of predictions and of the sums here may make of it.
    """
    rise, fall, squared = slopes(machine)
    share = weight / weight.max()
    mean = share @ (y - y[0]) / share.sum()
    spread = np.sqrt(share @ (y - y[0] - mean) ** 2 / share.sum()) or 1.0
    centre = y[0] + mean if machine.fit_intercept else 0.0
    cost = machine.C * weight * (1.0 if squared else 1.0 / spread)
    if machine.scale_C and not squared and np.ptp(y) > 0:
        cost = cost * spread
    tube = machine.epsilon / spread
    beta = np.zeros(len(y))
    beta[machine.rows_] = machine.dual_coef_[0] / spread
    seen = mapped(X, machine._metric)
    K = np.exp(-machine.gamma * cdist(seen, seen, DISTANCES[machine.kernel]))
    fitted = (machine.predict(X, raw=True) - machine.intercept_[0]) / spread
    z = (y - centre) / spread
    offset = (machine.intercept_[0] - centre) / spread
    residual = z - fitted - offset
    excess = np.maximum(np.abs(residual) - tube, 0.0)
    slope = np.where(residual > 0, rise, fall)
    losses = cost * slope * (excess**2 if squared else excess)
    norm = beta @ K @ beta
    primal = 0.5 * norm + losses.sum()
    side = np.where(beta > 0, rise, fall) * cost
    terms = tube * np.abs(beta) + (beta**2 / (4.0 * side) if squared else 0.0)
    if not squared:
        assert (np.abs(beta) <= side * (1 + 1e-9)).all()
    if machine.fit_intercept:
        assert abs(beta.sum()) <= 1e-9 * np.abs(beta).sum()
    dual = z @ beta - 0.5 * norm - terms.sum()
    alone = z - np.median(z) if machine.fit_intercept else z
    nothing = float((cost * np.where(alone > 0, rise, fall) * np.abs(alone)).sum())
    size = max(abs(primal), abs(dual), 1e-14 * nothing)
    if size == 0:
        return 0.0, 0.0
    # distances by inner products round with the squares of the coordinates
    size_of = np.square if machine.kernel == "rbf" else np.abs
    digits = EPSILON * (1.0 + machine.gamma * size_of(seen - seen.mean(axis=0)).sum(axis=1).max())
    rounded = EPSILON * np.abs(y).max() / spread + digits * K @ np.abs(beta)
    steep = cost * slope * (2.0 * excess + rounded if squared else 1.0)
    # several times that: every BLAS orders its sums in a way of its own
    unsure = 16.0 * (steep @ rounded + digits * np.abs(beta) @ K @ np.abs(beta))
    return max(primal - dual, 0.0) / size, unsure / size


def members(model):
    """(what is told, machine) of every member of every level."""
    single = isinstance(model.members_[0], dict)
    told = [model.members_] if single else model.members_
    best = [model.best_estimator_] if single else model.best_estimator_
    for entries, estimator in zip(told, best, strict=True):
        machines = getattr(estimator, "machines", [estimator])
        yield from zip(entries, machines, strict=True)


def claims(model, X, y, weight):
    """(claimed, true, unsure) gaps of all members."""
    weight = np.ones(len(y)) if weight is None else weight
    found = []
    for told, machine in members(model):
        rows = np.arange(len(y)) if told["fold"] is None else model.fold_rows_[told["fold"]]
        machine.rows_ = np.searchsorted(rows, machine.support_)
        assert told["dual_gap"] == machine.dual_gap_
        found.append((told["dual_gap"], *true_gap(machine, X[rows], y[rows], weight[rows])))
    return found


def fitted(seed):
    """A fitted model with its data, and whether the fit warned."""
    model, X, y, weight = case(seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, sample_weight=weight)
    return model, X, y, weight, bool(caught)
