"""The sentences of a report."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..inspection import CLASS, EXPECTILE, LOCATION, PATH, QUANTILE
from ..solvers import SolverResult, Status

HEADINGS = {
    QUANTILE: "Quantiles of {}",
    EXPECTILE: "Expectiles of {}",
    LOCATION: "Typical values of {}",
    CLASS: "Decisions about {}",
    PATH: "Decisions about {} at every level",
}

_MEANINGS = {
    QUANTILE: "The quantile at level τ is the value below which a share τ of the targets lies.",
    EXPECTILE: (
        "The expectile at level τ is a mean that weighs squared distances above it by τ and below "
        "it by 1 − τ. At τ = ½ it is the mean; towards 1 it is drawn to the largest values, by how "
        "far out they lie and not only by how many there are."
    ),
    LOCATION: "A typical value at every point; errors within the tube cost nothing.",
    CLASS: (
        "The model decides for the positive class where its probability is likely to exceed τ. "
        "With cost a of a missed positive and b of a false alarm, the best level is τ = b/(a + b)."
    ),
    PATH: (
        "The model was solved for every level τ at once: at each it decides for the positive class "
        "where its probability is likely to exceed τ. With cost a of a missed positive and b of a "
        "false alarm, the best level is τ = b/(a + b)."
    ),
}


def meaning(estimated: str) -> str:
    """What the numbers of this kind of model mean."""
    return _MEANINGS[estimated]


def certificate_words(result: SolverResult, tau: float | None) -> str:
    """The duality gap in plain words."""
    name = "The fit" if tau is None else f"Level {tau:g}"
    share = f"{100 * result.dual_gap:.2g} %"
    bound = (
        f"its objective is {result.primal_objective:.6g}, and the dual proves that no function of "
        f"this kind has one below {result.dual_objective:.6g}: at most {share} could be gained"
    )
    if result.status is Status.SOLVED:
        return f"{name} is solved: {bound}."
    return f"{name} stopped early ({result.status.value.replace('_', ' ')}): {bound}."


def mean_words(machines: int, gap: float) -> str:
    """What certifies a mean of machines."""
    return (
        f"This model is a mean of {machines} machines. Each is a convex problem with a dual that "
        "bounds what any function could reach, recomputed from the data: at most "
        f"{100 * gap:.2g} % of an objective could be gained. The mean itself has no objective."
    )


def learned_words(turned: bool, shares: NDArray[np.float64]) -> str:
    """What a learned metric is, and how few features make up most of it."""
    ordered = np.sort(shares)[::-1]
    most = int(np.searchsorted(np.cumsum(ordered), 0.9 - 1e-12)) + 1
    counted = "1 feature makes" if most == 1 else f"{most} features make"
    how = "weights the features, and turns them," if turned else "weights the features"
    return (
        f"The model {how} by what moved the predictions of a first one, then compares rows by the "
        f"weighted features. {counted} up 90 % of what counts, of {len(shares)} in all. A share "
        "says what the model looks at, in features of equal spread; it does not say what causes "
        "what. The map was learned before the fits below, whose certificates take it as given."
    )
