"""Scores as scikit-learn's searches report them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

Array = NDArray[np.float64]

#: scores that differ by less than this share are equal but for rounding
ROUNDING = 1e-9


def equal_to_best(means: Array) -> NDArray[np.bool_]:
    """Where the mean score is the best one, but for rounding."""
    best = np.nanmax(means)
    return np.nan_to_num(means, nan=-np.inf) >= best - ROUNDING * abs(best)


def cv_results(scores: Array, gammas: Array | None, costs: Array) -> dict[str, Any]:
    """The table of one level, C in the outer and γ in the inner loop.

    Parameters
    ----------
    scores : array (n_gammas, n_costs, n_folds)
    gammas : array or None
        None for a kernel without γ.
    costs : array
    """
    table = scores.transpose(1, 0, 2).reshape(-1, scores.shape[2])
    inner = [{}] if gammas is None else [{"gamma": float(gamma)} for gamma in gammas]
    params = [{"C": float(C), **rest} for C in costs for rest in inner]
    results: dict[str, Any] = {
        f"param_{name}": np.ma.array([point[name] for point in params]) for name in params[0]
    }
    results["params"] = params
    for fold, column in enumerate(table.T):
        results[f"split{fold}_test_score"] = column
    results["mean_test_score"] = mean = table.mean(axis=1)
    results["std_test_score"] = table.std(axis=1)
    ranked = np.where(equal_to_best(mean), np.nanmax(mean), mean)
    ranks = rankdata(-np.nan_to_num(ranked, nan=np.nanmin(mean) - 1.0), method="min")
    results["rank_test_score"] = ranks.astype(np.int32)
    return results
