"""The interior-point method on a dense matrix, for one level.

It is that of several levels (:mod:`.joint`) with one: some twenty predictor-corrector steps, each
with a Cholesky factor of K + diagonal, end at a relative gap of 1e-10 whatever the conditioning.
The way out where coordinate steps crawl.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..losses.group import GroupTerms
from ..losses.terms import KINK, DualTerms
from ..operators import SeparableKernel
from .joint.factors import factor_of
from .joint.iterate import Iterate
from .joint.settings import Cones, Equations
from .joint.systems import DenseSystem, FactorSystem, System
from .linalg import LinAlgError

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Barrier:
    """The numbers of the method."""

    #: the relative complementarity to end at: where K is nearly singular, an error of the dual is
    #: thousands of times that in the primal. Of 80 problems with up to 300 samples 3 take a second
    #: solve to a gap of 1e-11, and 9 with 1e-11 here
    tol: float = 1e-12
    #: the largest residual of the constraints, relative to the targets, at the end
    infeasibility: float = 1e-9
    #: steps at most; twenty are usual, nearly singular matrices take some forty
    steps: int = 60
    #: steps a solve usually takes, for estimates of its cost
    typical_steps: int = 18
    #: from this error on, steps that may pass without halving it: then rounding rules
    close: float = 1e-5
    patience: int = 3
    cones: Cones = field(default_factory=Cones)
    #: one solution of its equations will do: a second, for what rounding left, takes a fifth longer
    #: and ends no earlier
    equations: Equations = field(default_factory=lambda: Equations(refined=False, truncated=1.0))


@dataclass(frozen=True)
class Interior:
    """Where the method ended.

    Attributes
    ----------
    snapped : array (n,)
        β at the end, with variables on their way to zero or a bound put there.
    central : array (n,)
        β with the least duality gap on the way, strictly inside its bounds. Where K is nearly
        singular and costs are large, its residuals keep a smoothness that snapping destroys.
    """

    snapped: Array
    central: Array


def interior_point(
    K: Array,
    linear: Array,
    terms: DualTerms,
    total: float | None,
    interrupted: Callable[[], bool] = lambda: False,
    settings: Barrier | None = None,
) -> Interior:
    """The minimiser β of the dual with matrix K.

    ``total`` is the value that Σβ must keep, None without an offset. When ``interrupted`` says
    so, the best point so far is returned.
    """
    settings = settings or Barrier()
    snapped, central = np.zeros(len(linear)), np.zeros(len(linear))
    movable = np.flatnonzero(terms.upper > terms.lower)  # samples of cost 0 stay at 0
    if len(movable) == len(linear):
        return _interior_point(K, linear, terms, total, interrupted, settings)
    if len(movable) > 0:
        part = K[np.ix_(movable, movable)], linear[movable], terms.take(movable)
        inner = _interior_point(*part, total, interrupted, settings)
        snapped[movable], central[movable] = inner.snapped, inner.central
    return Interior(snapped, central)


def _interior_point(
    K: Array,
    linear: Array,
    terms: DualTerms,
    total: float | None,
    interrupted: Callable[[], bool],
    settings: Barrier,
) -> Interior:
    offset = total is not None
    system = _system(K, offset, settings.equations)
    y, own = one_sided(linear, terms)
    iterate = Iterate(y[:, None], own, offset, system, settings.cones, total or 0.0)
    scale = max(float(np.abs(linear).max()), float(terms.kink.max()), 1e-300)
    snapped = central = iterate.alpha[:, 0]
    best_error, least_gap, stalled = np.inf, np.inf, 0
    for _ in range(settings.steps):
        beta, residual = iterate.alpha[:, 0], linear - iterate.fitted[:, 0] - iterate.b
        # what the primal is above the dual
        gap = float((terms.value(beta) + terms.conjugate(residual) - residual * beta).sum())
        if gap < least_gap:
            central, least_gap = beta, gap
        infeasibility = float(np.abs(iterate.residual()).max()) / scale
        if total is not None:
            whole = max(float(np.abs(beta).sum()), 1e-300)
            infeasibility = max(infeasibility, abs(float(beta.sum()) - total) / whole)
        complementarity = iterate.relative_complementarity()
        error = max(complementarity, infeasibility)
        stalled = stalled + 1 if 0.5 * best_error <= error and best_error < settings.close else 0
        if error < best_error:
            snapped, best_error = iterate.snapped()[:, 0], error
        solved = complementarity <= settings.tol and infeasibility <= settings.infeasibility
        # past a stall rounding rules: what follows only gets worse
        if solved or stalled > settings.patience or interrupted():
            break
        try:
            iterate.step()
        except LinAlgError:
            break
    return Interior(snapped, central)


def _system(K: Array, offset: bool, equations: Equations) -> System:
    """Newton's equations, of the order of K's rank where that is small."""
    operator = SeparableKernel(K, np.eye(1))
    if len(K) > equations.few:
        factor = factor_of(operator, equations)
        if factor is not None and factor.left is None:
            return FactorSystem(operator, factor, offset, equations)
    return DenseSystem(operator, offset, equations)


def one_sided(linear: Array, terms: DualTerms) -> tuple[Array, GroupTerms]:
    """Targets and terms with the kinks of variables that can only rise, or only fall, in the
    targets."""
    rises, falls = terms.upper > 0, terms.lower < 0
    numbers = terms.numbers.copy()
    y = linear - np.where(rises & falls, 0.0, np.where(rises, terms.kink, -terms.kink))
    numbers[KINK][~(rises & falls)] = 0.0
    return y, GroupTerms(DualTerms(numbers[:, :, None]), 0.0)
