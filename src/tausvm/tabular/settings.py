"""The numbers by which columns are told apart and coded."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PreparationSettings:
    """What decides about a column, and how large its features are."""

    #: share of the given values of a text column that must read as numbers, or as dates, for it to
    #: be a column of them; the others are missing, which is said
    read_share: float = 0.9
    #: share of the rows in which a text must occur only once to be taken for an identifier
    identifier_share: float = 0.9
    #: rows that it takes to call a text an identifier: ten names are ten categories
    identifier_rows: int = 20
    #: standard deviations from the mean beyond which a value makes the tails of a number long. The
    #: pinball loss of three tuned levels on 18 tables of up to 500 rows, against scaling alone, is
    #: 0.971 in the geometric mean (cpu_act 0.77, cpus 0.85, updrs 1.04, pol 1.17), 0.975 for 4.5,
    #: 0.987 for 8. These tables chose the rule; on 22 others, with categories, it is 0.998. Tails
    #: drawn in everywhere cost 1.8 times the loss on bodyfat, a linear target
    far: float = 6.0
    #: share of the standard deviation that the spread between the quartiles counts as at least:
    #: some columns hold one value nearly everywhere. 0.971 in the same mean, 0.981 without it
    least_spread: float = 0.25
    #: share of the weight below which categories are pooled, where there are two such at least
    rare_share: float = 0.01
    #: distance of two categories. Two rows that differ by one standard deviation in one number each
    #: are √2 apart, and so are two rows of unequal categories. On 22 tables with categories the
    #: loss is 0.996 of that at √2 for 1, and 1.007 for 2: it hardly matters
    category_distance: float = 2.0**0.5
    #: rows' worth of the overall mean in the mean target of a category
    smoothing: float = 10.0
    #: parts of the rows, each coded by the targets of the others
    target_folds: int = 5
    #: words of a column that are quoted when it is said why it is what it is
    quoted: int = 3
