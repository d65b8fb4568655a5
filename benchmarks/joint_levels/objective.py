# ruff: noqa: RUF012  (benchopt reads plain class attributes)
"""Joint quantile regression: the true relative duality gap of α."""

import benchmark_utils  # noqa: F401  (makes `benchmarks` importable)
import numpy as np
from benchopt import BaseObjective

from benchmarks.joint_problems import EPSILONS, build, certify


class Objective(BaseObjective):
    """Judges α alone: it is made feasible, gets its best offsets, and is certified.

    ``value`` is the relative duality gap, (primal − dual) / max(|primal|, |dual|).
    """

    name = "joint quantiles"
    min_benchopt_version = "1.6"
    parameters = {"epsilon": list(EPSILONS)}

    def set_data(self, x, y):
        self.problem = build(x, y, self.epsilon)

    def get_objective(self):
        return {"problem": self.problem}

    def evaluate_result(self, alpha):
        reached = certify(self.problem, alpha)
        return {
            "value": reached.gap,
            "dual": reached.dual,
            "primal": reached.primal,
            "kkt_violation": reached.violation,
            "n_support": int(np.count_nonzero(alpha.any(axis=1))),
        }

    def get_one_result(self):
        return {"alpha": np.zeros(self.problem.y.shape)}
