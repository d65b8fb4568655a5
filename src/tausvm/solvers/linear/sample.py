"""A sample of the rows of tall data: its solution is near that of all, and cheap."""

from __future__ import annotations

import numpy as np

from .problem import LinearProblem

#: one row in so many is drawn
RATIO = 10
#: and so many rows a feature at least
ROWS_A_FEATURE = 20
FEWEST = 2000


def drawn(problem: LinearProblem, seed: int) -> LinearProblem | None:
    """The problem on a random sample of the rows, or None where data are not tall enough."""
    n = problem.n
    size = max(n // RATIO, ROWS_A_FEATURE * problem.d, FEWEST)
    if problem.pull is not None or size > n // 2:
        return None
    index = np.sort(np.random.default_rng(seed).choice(n, size, replace=False))
    return problem.sample(index, n / size)
