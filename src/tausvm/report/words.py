"""The sentences of a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

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
    QUANTILE: (
        "For every row the model draws lines that the target should stay below with a given "
        "chance. Level 0.9 is the value that nine targets in ten stay below; level 0.5 has half of "
        "them on either side."
    ),
    EXPECTILE: (
        "An expectile is a mean that counts some errors more than others: at level τ it weighs "
        "squared distances above it by τ and below it by 1 − τ. Level 0.5 is the mean; towards 1 "
        "it is drawn to the largest values, by how far out they lie and not only by how many "
        "there are."
    ),
    LOCATION: "The model predicts one typical value for every row; small errors are forgiven.",
    CLASS: (
        "The model decides yes or no for every row. Where the two errors cost differently, the "
        "best decision is yes as soon as the chance of yes exceeds "
        "(cost of a false alarm) / (both costs together)."
    ),
    PATH: (
        "The model decides yes or no for every row, and was solved for every level τ at once: at "
        "level τ it says yes where the chance of yes is likely to exceed τ. For given costs the "
        "best level is (cost of a false alarm) / (both costs together)."
    ),
}


def meaning(estimated: str) -> str:
    """What the numbers of this kind of model mean."""
    return _MEANINGS[estimated]


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun: 1 row, 1,234 rows."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def fitted_words(fitted: int | None, rows: int, at_least: int = 0) -> str:
    """Whether the rows of a report were fitted, and what follows.

    Parameters
    ----------
    fitted : int or None
        How many of the rows were fitted; None where that is not known.
    rows : int
    at_least : int
        How many of them were certainly fitted, where all is not known.
    """
    these = "this 1 row" if rows == 1 else f"these {rows:,} rows"
    flatter = "so the figures flatter the model; rows that it has not seen would test it"
    if fitted == 0:
        return f"None of {these} was seen by the fit: the figures are a fair test."
    if rows in (fitted, at_least):
        return f"All of {these} were fitted, {flatter}."
    if fitted is not None:
        return f"{fitted:,} of {these} {'was' if fitted == 1 else 'were'} fitted, {flatter}."
    if at_least:
        return f"At least {at_least:,} of {these} were fitted, {flatter}."
    return (
        f"Whether {these} were fitted cannot be told from the model; if they were, the figures "
        "flatter it."
    )


def percent(share: float) -> str:
    """A small share in per cent, in digits that are read at once."""
    if share < 1e-6:
        return "0.0001 %"
    digits = max(0, 1 - int(np.floor(np.log10(100 * share))))
    return f"{100 * share:.{digits}f} %"


def certificate_words(results: Sequence[SolverResult]) -> str:
    """What is proved about the solves of a model, in a sentence."""
    gap = percent(max(result.dual_gap for result in results))
    stopped = Counter(
        result.status.value.replace("_", " ")
        for result in results
        if result.status is not Status.SOLVED
    )
    many = len(results) > 1
    bound = (
        "a lower bound, computed from the data, proves that no function of this kind could "
        f"bring {'any of their objectives' if many else 'its objective'} down by more than {gap}."
    )
    if not stopped:
        return f"{f'All {len(results)} fits are' if many else 'The fit is'} solved: {bound}"
    why = ", ".join(stopped)
    which = f"{stopped.total()} of {len(results)} fits" if many else "The fit"
    return f"{which} stopped early ({why}): {bound}"


def mean_words(machines: int, gap: float) -> str:
    """What certifies a mean of machines."""
    return (
        f"This model is a mean of {machines} machines, each certified by itself: a lower bound, "
        "computed from the data, proves that no function of its kind could bring its objective "
        f"down by more than {percent(gap)}."
    )


def learned_words(turned: bool, shares: NDArray[np.float64]) -> str:
    """What a learned metric is, and how few features make up most of it."""
    ordered = np.sort(shares)[::-1]
    most = int(np.searchsorted(np.cumsum(ordered), 0.9 - 1e-12)) + 1
    makes = "1 feature makes" if most == 1 else f"{most} features make"
    how = "weights the features, and turns them," if turned else "weights the features"
    return (
        f"Before its fit the model {how} by how much each moved the predictions of a first one, "
        f"then calls rows alike that agree in what counts. {makes} up 90 % of what counts, of "
        f"{len(shares)} in all. A share says what the model looks at, in features of equal spread; "
        "it does not say what causes what."
    )
