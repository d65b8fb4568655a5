# ruff: noqa: RUF012  (benchopt reads plain class attributes)
"""CVXOPT's interior-point method for quadratic cone programs."""

import benchmark_utils  # noqa: F401  (makes `benchmarks` importable)
from benchopt import BaseSolver
from benchopt.stopping_criterion import SufficientProgressCriterion
from threadpoolctl import threadpool_limits

from benchmarks.joint_problems import PATIENCE, coneqp

#: beyond this many unknowns its dense matrices take minutes and gigabytes
LARGEST = 2000


class Solver(BaseSolver):
    """Stopped after a number of Newton steps."""

    name = "CVXOPT"
    requirements = ["cvxopt"]
    stopping_criterion = SufficientProgressCriterion(patience=PATIENCE, strategy="iteration")

    def skip(self, problem):
        n, p = problem.shape
        return n * p > LARGEST, f"more than {LARGEST} unknowns"

    def set_objective(self, problem):
        self.problem = problem
        self.threads = threadpool_limits(1)

    def run(self, n_iter):
        self.alpha = coneqp(self.problem, n_iter, 1e-10)

    def get_result(self):
        return {"alpha": self.alpha}
