# ruff: noqa: RUF012  (benchopt reads plain class attributes)
"""tausvm: ``auto``, and the paper's Algorithm 1 with and without its active set."""

import benchmark_utils  # noqa: F401  (makes `benchmarks` importable)
from benchopt import BaseSolver
from benchopt.stopping_criterion import SufficientProgressCriterion
from threadpoolctl import threadpool_limits

from benchmarks.joint_problems import PATIENCE
from tausvm.solvers import Auto, PrimalDualCD, SolverOptions, solve

VARIANTS = {
    "auto": Auto(),
    "primal_dual_cd with active set": PrimalDualCD(),
    "primal_dual_cd": PrimalDualCD(shrinking=False),
}


class Solver(BaseSolver):
    """Stopped after a number of Newton steps, or of passes."""

    name = "tausvm"
    stopping_criterion = SufficientProgressCriterion(patience=PATIENCE, strategy="iteration")
    parameters = {"variant": list(VARIANTS)}

    def set_objective(self, problem):
        self.problem = problem
        self.threads = threadpool_limits(1)

    def run(self, n_iter):
        self.problem.operator.kept.clear()  # every run factorises anew
        options = SolverOptions(tol=1e-10, max_iter=n_iter)
        self.alpha = solve(self.problem, VARIANTS[self.variant], options).beta

    def get_result(self):
        return {"alpha": self.alpha}
