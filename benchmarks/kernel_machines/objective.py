# ruff: noqa: RUF012  (benchopt reads plain class attributes)
"""ε-SVR with the RBF kernel: the dual objective reached, and the gap."""

import benchmark_utils  # noqa: F401  (makes `benchmarks` importable)
import numpy as np
from benchopt import BaseObjective

from benchmarks.problems import EPSILON, SVR_SETTINGS, certify
from tausvm.losses import EpsilonInsensitive


class Objective(BaseObjective):
    """Judges β alone: primal, dual and gap are recomputed from the data.

    ``value`` is the relative duality gap, (primal − dual) / max(|primal|, |dual|).
    """

    name = "epsilon-SVR"
    min_benchopt_version = "1.6"
    requirements = ["scikit-learn"]
    sampling_strategy = "run_once"
    parameters = {
        "C, gamma": list(SVR_SETTINGS.values()),
        "epsilon": [EPSILON],
    }

    def set_data(self, X, y):
        self.X, self.y = X, y

    def get_objective(self):
        return {
            "X": self.X,
            "y": self.y,
            "C": self.C,
            "gamma": self.gamma,
            "epsilon": self.epsilon,
        }

    def evaluate_result(self, beta):
        loss = EpsilonInsensitive(self.epsilon)
        reached = certify(beta, self.X, self.y, loss, self.C, self.gamma, offset=True)
        return {
            "value": reached.gap,
            "dual": reached.dual,
            "primal": reached.primal,
            "kkt_violation": reached.violation,
            "n_support": int(np.count_nonzero(beta)),
        }

    def get_one_result(self):
        return {"beta": np.zeros(len(self.y))}
