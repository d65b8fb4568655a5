# ruff: noqa: RUF012  (benchopt reads plain class attributes)
"""The benchmark data sets, standardised."""

import benchmark_utils  # noqa: F401  (makes `benchmarks` importable)
from benchopt import BaseDataset

from benchmarks.data import load
from benchmarks.problems import DATA_SETS


class Dataset(BaseDataset):
    """One data set by name; ``max_rows`` cuts it, at random."""

    name = "regression"
    requirements = ["pandas"]
    parameters = {"data": list(DATA_SETS), "max_rows": [None]}
    test_parameters = {"data": ["concrete_comp"], "max_rows": [100]}

    def get_data(self):
        X, y = load(self.data, "standard", self.max_rows)
        return {"X": X, "y": y}
