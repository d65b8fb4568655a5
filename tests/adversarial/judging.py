"""Fits a case and holds what it claims against the truth."""

from __future__ import annotations

import inspect
import re
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

import tausvm

from .problems import ALSO_TUNED, JOINT, LINEAR, PATHS, SQUARED, TUNED, Case
from .truth import (
    Gram,
    GroupLoss,
    L,
    Long,
    Loss,
    Truth,
    gram,
    joint_truth,
    kernel_truth,
    linear_truth,
    long,
    scale_gamma,
    standard_deviation,
)

#: kernels exp(−γ·distance)
DISTANCES = ("rbf", "laplacian", "exponential")
#: how much better than the truth a claim may look
FACTOR = 10.0
#: seconds of processor time for one case
PATIENCE = 30.0


class TooLong(Exception):
    """A fit did not end."""


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Raise :class:`TooLong` after so many seconds of processor time."""

    def ring(*_: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


@dataclass(frozen=True)
class Claim:
    """A gap that the library shows, and what it is in truth."""

    where: str
    shown: float
    truth: Truth
    #: whether a warning at the fit does not excuse it
    alone: bool = False

    def honest(self, tol: float) -> bool:
        return self.truth.gap <= FACTOR * max(self.shown, tol)

    def __str__(self) -> str:
        t = self.truth
        return (
            f"{self.where}: shows {self.shown:.2e}, is {t.gap:.2e} (primal {float(t.primal):.12g}, "
            f"dual {float(t.dual):.12g}, rounding {t.blur:.1e})"
        )


@dataclass
class Outcome:
    """What became of a case."""

    case: Case
    failures: list[str] = field(default_factory=list)
    warned: bool = False
    refused: str = ""
    #: claims that a warning excuses
    understated: list[str] = field(default_factory=list)
    #: claims about which float64 can say nothing at their tolerance
    blurred: int = 0
    claims: int = 0

    def report(self) -> str:
        return "\n    ".join([str(self.case), *self.failures])


def run(case: Case) -> Outcome:
    """Fit and judge."""
    outcome = Outcome(case)
    try:
        with patience(PATIENCE), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                model = fitted(case)
            except ValueError as error:
                outcome.refused = str(error)
                if not names_a_parameter(case, str(error)):
                    outcome.failures.append(f"refused without naming a parameter: {error}")
                if "semidefinite" in str(error) and case.params.get("kernel") != "sigmoid":
                    outcome.failures.append(f"refused for a kernel that is one: {error}")
                return outcome
            finally:
                outcome.warned = any(issubclass(w.category, ConvergenceWarning) for w in caught)
                leaked = {str(w.message) for w in caught if issubclass(w.category, RuntimeWarning)}
                outcome.failures += [f"RuntimeWarning: {message}" for message in sorted(leaked)]
            for claim in claims(case, model):
                weigh(claim, case, outcome)
    except TooLong:
        outcome.failures.append(f"not done after {PATIENCE:g} s of processor time")
    except Exception as error:  # whatever it is, the case and its seed go with it
        outcome.failures.append(f"{type(error).__name__}: {error} {where(error)}")
    return outcome


def where(error: BaseException) -> str:
    """The innermost place of an error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"({trace.tb_frame.f_code.co_filename}:{trace.tb_lineno})" if trace else ""


def names_a_parameter(case: Case, message: str) -> bool:
    """Whether an error says what to change."""
    names = [*getattr(tausvm, case.name)().get_params(), "X", "y", "sample_weight"]
    return any(re.search(rf"\b{re.escape(name)}\b", message) for name in names)


def weigh(claim: Claim, case: Case, outcome: Outcome) -> None:
    tol = case.params["tol"]
    outcome.claims += 1
    outcome.blurred += claim.truth.blur > FACTOR * max(claim.shown, tol)
    if not np.isfinite(claim.shown) or claim.shown < 0:
        outcome.failures.append(f"{claim.where}: shows a gap of {claim.shown}")
    if not np.isfinite(claim.truth.primal):
        outcome.failures.append(f"{claim.where}: predictions are not finite")
        return
    if claim.truth.strayed > tol:
        outcome.failures.append(
            f"{claim.where}: predictions are {claim.truth.strayed:.1e} of their size from Kβ + b"
        )
    if not claim.honest(tol):
        excused = outcome.warned and not claim.alone
        (outcome.understated if excused else outcome.failures).append(str(claim))


# ---- what a fit claims ----


def fitted(case: Case) -> Any:
    cls = getattr(tausvm, case.name)
    known = cls().get_params()
    raw = "raw" in inspect.signature(cls.predict).parameters
    optional = {
        name: value
        for name, value in case.optional.items()
        # what is applied after the certified function can be looked behind, or is left alone
        if name in known and (raw or name not in ("clip", "ordered", "monotone"))
    }
    model = cls(**case.params, **optional)
    return model.fit(case.given, case.y, sample_weight=case.weight)


def claims(case: Case, model: Any) -> Iterator[Claim]:
    if not all_numbers(model.predict(case.given)):
        raise FloatingPointError("predict returns numbers that are not finite")
    if case.params.get("kernel") == "sigmoid":
        return  # not a kernel: there is no duality to judge by
    if case.name.removesuffix("CV") in ALSO_TUNED and case.name.endswith("CV"):
        best = model.best_estimator_
        for machine in best if isinstance(best, list) else [best]:
            params = machine.get_params(deep=False)
            yield from claims(replace(case, name=type(machine).__name__, params=params), machine)
        return
    data = Data(case)
    if case.name in TUNED:
        yield from tuned_claims(data, model)
    elif case.name in LINEAR:
        yield from linear_claims(data, model)
    elif case.name in JOINT:
        yield from joint_claims(data, model)
    elif case.name in PATHS:
        yield from path_claims(data, model)
    else:
        yield from kernel_claims(data, model, data.gram())


def all_numbers(predictions: Any) -> bool:
    """Whether none is NaN or infinite; labels that are words are all right."""
    predictions = np.asarray(predictions)
    return predictions.dtype.kind not in "fc" or bool(np.isfinite(predictions).all())


class Data:
    """The rows that count, in extended precision."""

    def __init__(self, case: Case, rows: Any = None) -> None:
        self.case = case
        n = len(case.y)
        weight = np.ones(n) if case.weight is None else case.weight
        inside = np.zeros(n, dtype=bool)
        inside[slice(None) if rows is None else rows] = True
        self.kept = np.flatnonzero((weight > 0) & inside)
        self.weight = long(weight[self.kept])
        self.labels = case.y[self.kept]
        self.y = None if self.labels.dtype.kind not in "fiub" else long(self.labels)
        self.rows = case.rows[self.kept]

    def given(self) -> Any:
        """What ``predict`` takes for these rows."""
        given = self.case.given
        return given[self.kept]

    def gram(self, machine: Any = None) -> Gram:
        """The kernel matrix of these rows: of the case, or of a machine with γ of its own.

        A machine of a selection has its own kernel too, and may see the rows under a linear map.
        """
        params = self.case.params
        gamma = params.get("gamma", "scale") if machine is None else machine.gamma
        kernel = params["kernel"] if machine is None else machine.kernel
        metric = None if machine is None else machine._metric
        if gamma == "scale":
            gamma = scale_gamma(self.rows, self.weight)
        elif gamma == "auto":
            gamma = 1.0 / self.rows.shape[1]
        given = self.case.given
        if kernel == "precomputed":
            given = np.asarray(given)[np.ix_(self.kept, self.kept)]
        degree, coef0 = params.get("degree", 3), params.get("coef0", 0.0)
        if metric is None:
            return gram(kernel, self.rows, given, gamma, degree, coef0)
        # the function is one of the mapped rows as they are in float64
        rows = self.rows * metric if metric.ndim == 1 else self.rows @ metric
        found = gram(kernel, rows, given, gamma, degree, coef0)
        if metric.ndim == 1:
            return found
        # sums of products are rounded in another order wherever other rows are beside them
        reach = L(np.abs(self.rows).max() * np.abs(metric).sum(axis=0).max() * len(metric))
        longest = 2 * reach if kernel == "rbf" else L(1)
        slack = 4 * L(gamma) * reach * longest if kernel in DISTANCES else L(degree) * reach
        return Gram(found.values, found.size + found.size * slack)

    def cost(self, model: Any, squared: bool, C: float | None = None) -> Long:
        """cᵢ, with the spread of y in it where C counts in it."""
        cost = L(model.C if C is None else C) * self.weight
        if getattr(model, "scale_C", False) and not squared:
            cost = cost * standard_deviation(self.labels, self.weight)
        return cost

    def full(self, support: Any, coefficients: Any) -> Long:
        """Coefficients of the support vectors as ones of all rows that count, (…, n)."""
        out = np.zeros((*np.shape(coefficients)[:-1], len(self.case.y)), dtype=L)
        out[..., np.asarray(support, dtype=np.intp)] = long(coefficients)
        return out[..., self.kept]


def raw(method: Any, X: Any, **more: Any) -> Long:
    """The certified function, before anything is done to it."""
    if "raw" in inspect.signature(method).parameters:
        more["raw"] = True
    return long(method(X, **more))


def squared_loss(name: str, params: dict[str, Any]) -> bool:
    return name in SQUARED or str(params.get("loss", "")).startswith("squared")


def losses(data: Data, model: Any, name: str) -> Iterator[tuple[str, Loss]]:
    """One loss a level."""
    squared = squared_loss(name, model.get_params(deep=False))
    cost = data.cost(model, squared)
    power = 2 if squared else 1
    if not hasattr(model, "tau"):
        yield "fit", Loss.tube(cost, model.epsilon, power)
        return
    for tau in np.atleast_1d(model.tau):
        yield f"tau={tau:.6g}", Loss.pinball(float(tau), cost, model.epsilon, power)


def kernel_claims(data: Data, model: Any, K: Gram) -> Iterator[Claim]:
    name = type(model).__name__
    beta = data.full(model.support_, model.dual_coef_)
    shown = np.atleast_1d(model.dual_gap_)
    offset = bool(model.fit_intercept)
    if name == "TauSVC":
        predicted = raw(model.decision_function, data.given()).reshape(len(data.kept), -1)
        classes = model.classes_[1:] if len(model.classes_) == 2 else model.classes_
        signs = [long(np.where(data.labels == label, 1.0, -1.0)) for label in classes]
        cost = data.cost(model, squared=True)
        levels = [(f"class {k}", Loss.hinge(model.tau, s, cost)) for k, s in enumerate(signs)]
        targets = signs
    else:
        predicted = raw(model.predict, data.given()).reshape(len(data.kept), -1)
        levels = list(losses(data, model, name))
        targets = [data.y] * len(levels)
    assert len(levels) == len(shown) == len(beta)
    results = model.result_ if isinstance(model.result_, list) else [model.result_]
    for k, (place, loss) in enumerate(levels):
        # landmarks have dual variables of all rows beside the coefficients of a few
        duals = long(results[k].beta) if hasattr(results[k], "landmarks") else None
        truth = kernel_truth(
            K,
            targets[k],
            loss,
            offset,
            beta[k],
            L(model.intercept_[k]),
            predicted[:, k],
            dual_of=duals,
        )
        yield Claim(place, float(shown[k]), truth)


def linear_claims(data: Data, model: Any) -> Iterator[Claim]:
    free = bool(model.fit_intercept) and model.intercept_scaling is None
    column = 0.0
    if model.fit_intercept and model.intercept_scaling is not None:
        column = float(model.intercept_scaling)
    results = model.result_ if isinstance(model.result_, list) else [model.result_]
    shown = np.atleast_1d(model.dual_gap_)
    coef = long(np.atleast_2d(model.coef_))
    predicted = raw(model.predict, data.given()).reshape(len(data.kept), -1)
    X = long(data.rows)
    for k, (place, loss) in enumerate(losses(data, model, type(model).__name__)):
        truth = linear_truth(
            X,
            data.y,
            loss,
            free,
            column,
            long(results[k].beta),
            coef[k],
            L(model.intercept_[k]),
            predicted[:, k],
        )
        yield Claim(place, float(shown[k]), truth)


def joint_claims(data: Data, model: Any) -> Iterator[Claim]:
    name = type(model).__name__
    squared = squared_loss(name, model.get_params(deep=False))
    cost = data.cost(model, squared)[:, None]
    predicted = raw(model.predict, data.given()).reshape(len(data.kept), -1)
    p = predicted.shape[1]
    if name == "JointSVR":
        outputs = Loss(np.tile(cost, (1, p)), np.tile(cost, (1, p)), L(0), 2 if squared else 1)
        y, B = data.y.reshape(-1, p), np.eye(p, dtype=L)
    else:
        taus = long(np.atleast_1d(model.tau))
        outputs = Loss(cost * taus, cost * (1 - taus), L(0), 2 if squared else 1)
        y = np.tile(data.y[:, None], (1, p))
        B = np.eye(p, dtype=L)
        if model.output_kernel == "levels":
            B = np.exp(-L(model.gamma_tau) * (taus[:, None] - taus[None, :]) ** 2)
    truth = joint_truth(
        data.gram(),
        B,
        y,
        GroupLoss(outputs, L(model.epsilon)),
        bool(model.fit_intercept),
        data.full(model.support_, model.dual_coef_).T,
        long(model.intercept_),
        predicted,
    )
    yield Claim("fit", float(model.dual_gap_), truth)


def path_claims(data: Data, model: Any) -> Iterator[Claim]:
    """At random levels and in the middles of pieces, widest and random ones."""
    rng = np.random.default_rng(data.case.seed)
    penalised = bool(model.fit_intercept and model.penalise_intercept)
    free = bool(model.fit_intercept) and not penalised
    K = data.gram()
    if penalised:
        K = K.plus(1.0)
    shown = np.atleast_1d(model.dual_gap_)
    kinks = model.taus_ if isinstance(model.taus_, list) else [model.taus_]
    cost = data.cost(model, squared=type(model).__name__ == "TauPathSVC")
    everything = np.arange(len(data.case.y))
    for path, taus in enumerate(kinks):
        for tau in levels_of(taus, rng):
            beta = data.full(everything, model.dual_coef(tau)[path])
            b = L(model.intercept(tau)[path])
            if type(model).__name__ == "TauPathSVC":
                several = len(model.classes_) > 2
                label = model.classes_[path if several else 1]
                y = long(np.where(data.labels == label, 1.0, -1.0))
                loss = Loss.hinge(tau, y, cost)
                values = raw(model.decision_function, data.given(), tau=tau)
                values = values.reshape(len(y), -1)[:, path]
            else:
                y, loss = data.y, Loss.pinball(tau, cost)
                values = raw(model.predict, data.given(), tau=tau)
            # a penalised offset is part of f
            inside = beta.sum() if penalised else L(0)
            ends = (2 if type(model).__name__ == "TauPathSVC" else 1) * cost
            truth = kernel_truth(K, y, loss, free, beta, b - inside, values, interpolated=ends)
            place = f"path {path}, tau={tau!r}"
            yield Claim(place, float(shown[path]), truth)
            certificate = model.certificate(tau)
            certificate = certificate[path] if isinstance(certificate, list) else certificate
            yield Claim(f"certificate, {place}", float(certificate.dual_gap), truth, alone=True)


def levels_of(kinks: Any, rng: np.random.Generator) -> list[float]:
    """Levels to look at: random ones, and middles of pieces."""
    kinks = np.unique(np.concatenate([[0.0], np.asarray(kinks, dtype=float), [1.0]]))
    middles = (kinks[1:] + kinks[:-1]) / 2
    widest = middles[np.argsort(np.diff(kinks))[-3:]]
    some = rng.choice(middles, size=min(5, len(middles)), replace=False)
    levels = np.concatenate([rng.uniform(size=4), some, widest, [0.001, 0.5, 0.999]])
    return [float(tau) for tau in np.unique(levels) if 0 < tau < 1]


def tuned_claims(data: Data, model: Any) -> Iterator[Claim]:
    """Every machine that predicts, on its own rows and with its own parameters."""
    case = data.case
    if case.name == "LinearSVRCV":
        yield from linear_claims(data, model.best_estimator_)
        return
    several = isinstance(model.best_estimator_, list)
    best = model.best_estimator_ if several else [model.best_estimator_]
    members = model.members_ if several else [model.members_]
    worst = np.atleast_1d(model.dual_gap_)
    folds = training_rows(case)
    for level, (machine, told) in enumerate(zip(best, members, strict=True)):
        machines = getattr(machine, "machines", [machine])
        for one, entry in zip(machines, told, strict=True):
            part = data if entry["fold"] is None else Data(case, folds[entry["fold"]])
            if entry["C"] != one.C or entry.get("gamma", one.gamma) != one.gamma:
                raise AssertionError(f"members_ says {entry}, the machine is {one}")
            for claim in kernel_claims(part, one, part.gram(one)):
                place = f"level {level}, fold {entry['fold']}, {claim.where}"
                yield Claim(place, min(claim.shown, float(entry["dual_gap"])), claim.truth)
                yield Claim(f"worst of {place}", float(worst[level]), claim.truth)
        parts = [raw(one.predict, case.given) for one in machines]
        mean = np.average(parts, axis=0, weights=[float(entry["weight"]) for entry in told])
        shown = raw(model.predict, case.given).reshape(len(case.y), -1)[:, level]
        if np.abs(shown - mean).max() > 1e-12 * np.abs(parts).max():
            raise AssertionError(f"level {level}: predict is not the mean of its members")


def training_rows(case: Case) -> list[Any]:
    """The training rows of the folds, as the documentation has it: shuffled, from seed 0."""
    splits = KFold(case.params["cv"], shuffle=True, random_state=0).split(case.rows)
    return [train for train, _ in splits]
