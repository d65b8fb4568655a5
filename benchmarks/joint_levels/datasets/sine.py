# ruff: noqa: RUF012  (benchopt reads plain class attributes)
"""The synthetic data of the paper's Figure 3."""

import benchmark_utils  # noqa: F401  (makes `benchmarks` importable)
from benchopt import BaseDataset

from benchmarks.joint_problems import sine


class Dataset(BaseDataset):
    """A sine within an envelope, with noise that falls along x."""

    name = "sine"
    parameters = {"n": [50, 500, 5000]}
    test_parameters = {"n": [50]}

    def get_data(self):
        x, y = sine(self.n)
        return {"x": x, "y": y}
