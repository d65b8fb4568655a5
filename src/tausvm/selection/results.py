"""Scores as scikit-learn's searches report them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

Array = NDArray[np.float64]

#: scores that differ by less than this share are equal but for rounding
ROUNDING = 1e-9


def equal_to_best(means: Array, slack: float = 0.0) -> NDArray[np.bool_]:
    """Where the mean score is the best one, but for rounding; nowhere without any score.

    ``slack`` is what rounding makes of a perfect score.
    """
    if np.isnan(means).all():
        return np.zeros(means.shape, dtype=bool)
    best = np.nanmax(means)
    return np.nan_to_num(means, nan=-np.inf) >= best - max(ROUNDING * abs(best), slack)


def cv_results(
    scores: Array, others: Sequence[dict[str, float]], costs: Array, slack: float = 0.0
) -> dict[str, Any]:
    """The table of one level, C in the outer loop.

    Parameters
    ----------
    scores : array (n_others, n_costs, n_folds)
    others : sequence of dict
        The parameters beside C, such as γ: those of the inner loop; one empty dict where C is
        alone.
    costs : array
    slack : float
        What rounding makes of a perfect score.
    """
    table = scores.transpose(1, 0, 2).reshape(-1, scores.shape[2])
    params = [{"C": float(C), **rest} for C in costs for rest in others]
    results: dict[str, Any] = {
        f"param_{name}": np.ma.array([point[name] for point in params]) for name in params[0]
    }
    results["params"] = params
    for fold, column in enumerate(table.T):
        results[f"split{fold}_test_score"] = column
    results["mean_test_score"] = mean = table.mean(axis=1)
    results["std_test_score"] = table.std(axis=1)
    order = np.where(equal_to_best(mean, slack), -np.inf, -mean)
    ranks = rankdata(np.nan_to_num(order, nan=np.inf, neginf=-np.inf), method="min")
    results["rank_test_score"] = ranks.astype(np.int32)
    return results
