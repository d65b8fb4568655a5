"""Paths along C in single and double precision against the solvers."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from tausvm._core.single import SinglePairs

from tausvm.losses import EpsilonInsensitive, Pinball
from tausvm.operators import HeldKernel
from tausvm.selection.paths import PathProblem, solve_path
from tausvm.solvers import Point, Problem, SolverOptions, certificate, solve

from ..estimators.data import wave

X, Y = wave(200)
COSTS = (0.1, 1.0, 10.0, 100.0)
LOSSES = [Pinball(0.2), Pinball(0.7, epsilon=0.05), EpsilonInsensitive(0.1)]


def path(loss, dtype, offset, weight, share=np.inf, starts=None):
    gram = HeldKernel(rbf_kernel(X, gamma=1.0).astype(dtype))
    problems = [
        PathProblem(C, loss.dual_terms(Y, C * weight), 0.1 * C, share, (starts or {}).get(C))
        for C in COSTS
    ]
    fits = list(solve_path(gram, Y, problems, offset, lambda: False))
    return [Problem(gram, Y, problem.terms, offset) for problem in problems], fits


@pytest.mark.parametrize("loss", LOSSES, ids=["pinball", "pinball-epsilon", "epsilon"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_fit_reaches_its_gap(loss, dtype, offset, weighted):
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.5, 3.0, len(Y)) if weighted else np.ones(len(Y))
    problems, fits = path(loss, dtype, offset, weight)
    assert len(fits) == len(COSTS)
    for C, problem, fit in zip(COSTS, problems, fits, strict=True):
        lower, upper = problem.terms.lower, problem.terms.upper
        assert (fit.beta >= lower - 1e-6 * C).all() and (fit.beta <= upper + 1e-6 * C).all()
        if offset:
            assert abs(fit.beta.sum()) <= 1e-5 * np.abs(fit.beta).sum()
        beta = problem.feasible(fit.beta)
        found = certificate(problem, Point.of(beta))
        gap = found.primal - found.dual
        assert gap <= 0.11 * C
        assert fit.gap == pytest.approx(gap, rel=0.05, abs=1e-4 * C)
        exact = solve(problem, "interior_point", SolverOptions(tol=1e-9))
        assert found.primal <= exact.primal_objective + 0.11 * C


def test_a_share_of_the_primal_objective_is_kept_too():
    problems, fits = path(Pinball(0.3), np.float32, True, np.ones(len(Y)), share=1e-3)
    for problem, fit in zip(problems, fits, strict=True):
        found = certificate(problem, Point.of(problem.feasible(fit.beta)))
        assert found.gap <= 1.1e-3


def test_a_good_start_takes_no_steps():
    _, fits = path(Pinball(0.3), np.float32, True, np.ones(len(Y)))
    starts = {C: fit.beta for C, fit in zip(COSTS, fits, strict=True)}
    _, again = path(Pinball(0.3), np.float32, True, np.ones(len(Y)), starts=starts)
    assert all(fit.steps == 0 for fit in again)


def test_steps_end_when_nothing_is_left():
    """Copies of one row: every pair of them has no curvature."""
    rows = np.ones((40, 40), dtype=np.float32)
    y = np.linspace(-1, 1, 40)
    core = SinglePairs(rows, y)
    terms = Pinball(0.5).dual_terms(y, np.ones(40))
    core.begin(np.zeros(40), -y, terms.numbers)
    assert core.run(0.0, 0.0, 10, 10_000)
    # f is a constant: the gap is that of the best constant, which needs no f at all
    assert core.gap == pytest.approx(0.0, abs=1e-5)
    assert abs(core.beta.sum()) < 1e-5
