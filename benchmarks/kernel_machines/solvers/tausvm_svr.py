# ruff: noqa: RUF012  (benchopt reads plain class attributes)
"""tausvm's SVR with each of its solvers."""

import benchmark_utils  # noqa: F401  (makes `benchmarks` importable)
from benchopt import BaseSolver
from threadpoolctl import threadpool_limits

from benchmarks.problems import CACHE_SIZE, dual_vector
from tausvm import SVR


class Solver(BaseSolver):
    """A fit with everything in it: kernel rows, solve, certificate."""

    name = "tausvm"
    parameters = {
        "solver": ["auto", "block", "smo"],
        "tol": [1e-3],
    }

    def set_objective(self, X, y, C, gamma, epsilon):
        self.X, self.y = X, y
        self.model = SVR(
            C=C,
            gamma=gamma,
            epsilon=epsilon,
            solver=self.solver,
            tol=self.tol,
            cache_size=CACHE_SIZE,
        )
        self.threads = threadpool_limits(1)

    def run(self, _):
        self.model.fit(self.X, self.y)

    def get_result(self):
        return {"beta": dual_vector(self.model, len(self.y))}
