# ruff: noqa: RUF012  (benchopt reads plain class attributes)
"""scikit-learn's SVR: LIBSVM."""

import benchmark_utils  # noqa: F401  (makes `benchmarks` importable)
from benchopt import BaseSolver
from sklearn.svm import SVR

from benchmarks.problems import CACHE_SIZE, dual_vector


class Solver(BaseSolver):
    """``tol`` is LIBSVM's: the largest violation of the optimality conditions."""

    name = "scikit-learn"
    parameters = {"tol": [1e-3]}

    def set_objective(self, X, y, C, gamma, epsilon):
        self.X, self.y = X, y
        self.model = SVR(C=C, gamma=gamma, epsilon=epsilon, tol=self.tol, cache_size=CACHE_SIZE)

    def run(self, _):
        self.model.fit(self.X, self.y)

    def get_result(self):
        return {"beta": dual_vector(self.model, len(self.y))}
