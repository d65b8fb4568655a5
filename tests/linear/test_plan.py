"""What ``auto`` expects of Newton's method."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from tausvm.losses import Loss, Pinball, SquaredPinball
from tausvm.operators import LinearOperator
from tausvm.solvers import Problem
from tausvm.solvers.linear import LinearAuto
from tausvm.solvers.linear.auto import Plan, Stand


def plan(loss: Loss, C: float) -> Plan:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 100))
    y = X @ rng.normal(size=100) + rng.normal(size=300)
    terms = loss.dual_terms(y[:1], np.array([C])).shared(len(y))
    return LinearAuto()._plan(Problem(LinearOperator(X), y, terms, True))


def test_less_is_expected_of_a_fit_near_the_best_constant() -> None:
    drawn = plan(Pinball(0.4), 1.0)
    costs = [drawn.newton(Stand(fall=fall)) for fall in (0.0, 0.3, 1.0)]
    assert 0 < costs[0] < costs[1] < costs[2]
    assert drawn.too_many(Stand(fall=0.0)) <= drawn.too_many(Stand(fall=1.0))


def test_a_squared_loss_takes_as_many_steps_wherever_it_ends() -> None:
    drawn = plan(SquaredPinball(0.4), 1.0)
    assert drawn.newton(Stand(fall=0.0)) == drawn.newton(Stand(fall=1.0)) > 0


@pytest.mark.parametrize("dual, share", [(-1.0, 1.0), (0.0, 1.0), (0.25, 0.75), (2.0, 0.0)])
def test_the_share_is_that_of_the_best_constant(dual: float, share: float) -> None:
    drawn = plan(Pinball(0.4), 1.0)
    problem = drawn.problem
    most = problem.terms.total_loss(problem.y, np.zeros(problem.n), problem.constant)
    assert drawn.fall(dual * most) == pytest.approx(share)


def test_steps_that_may_factorise_all_rows_are_dear() -> None:
    """Columns of unlike scale keep conjugate gradients from arriving: 1,487 × 2,760 rows over four
    decades took 8 s without a solution, and 0.5 s by the interior-point method."""
    rng = np.random.default_rng(0)
    X = sp.random(1_487, 2_760, 0.022, format="csr", random_state=rng)
    y = rng.normal(size=1_487)
    terms = SquaredPinball(0.5).dual_terms(y[:1], np.array([1.0])).shared(len(y))
    drawn = LinearAuto()._plan(Problem(LinearOperator(X), y, terms, True))
    assert 3 < drawn.newton_steps < 30
