"""The rows of every fold: what a splitter says, in terms of the rows of positive weight."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    check_cv,
)
from sklearn.utils import check_random_state

from ..estimators.data import TrainingSet
from ..estimators.parameters import check_integer

Index = NDArray[np.int64]


def split_rows(
    cv: Any,
    data: TrainingSet,
    groups: Any,
    random_state: Any,
    labels: NDArray[Any] | None = None,
) -> list[tuple[Index, Index]]:
    """Training and validation rows of every fold, as positions in the data.

    Parameters
    ----------
    cv : int, splitter or iterable
        An integer makes folds of shuffled rows, or of whole groups.
    data : TrainingSet
    groups : array (n_given,) or None
    random_state : int, RandomState or None
        Of the shuffle; None is the same every time.
    labels : array (n_given,) or None
        Of a classifier: an integer ``cv`` then makes folds with the same shares of the classes.
    """
    n_rows = data.n_given
    place = np.full(n_rows, -1, dtype=np.int64)
    place[data.rows] = np.arange(len(data))
    folds = []
    targets = np.zeros(n_rows) if labels is None else labels
    splitter = _splitter(cv, n_rows, groups, random_state, labels)
    for parts in splitter.split(np.zeros((n_rows, 1)), targets, groups):
        train, validation = (place[_positions(part, n_rows)] for part in parts)
        folds.append((train[train >= 0], validation[validation >= 0]))
    if not folds:
        raise ValueError("cv must give at least one split, got none")
    for k, (train, validation) in enumerate(folds):
        if len(train) < 2 or len(validation) < 1:
            raise ValueError(
                "cv must leave 2 rows of positive weight for training and 1 for validation "
                f"in every fold, got {len(train)} and {len(validation)} in fold {k}"
            )
    return folds


def _splitter(
    cv: Any, n_rows: int, groups: Any, random_state: Any, labels: NDArray[Any] | None
) -> Any:
    classifier = labels is not None
    if not isinstance(cv, int | np.integer) or isinstance(cv, bool):
        try:
            return check_cv(cv, labels, classifier=classifier)
        except ValueError as error:
            raise ValueError(f"cv: {error}") from error
    check_integer("cv", cv, 2)
    if n_rows < cv:
        raise ValueError(f"cv={cv} folds need as many rows, got n_samples = {n_rows}")
    if groups is not None:
        return StratifiedGroupKFold(cv) if classifier else GroupKFold(cv)
    seed = check_random_state(0 if random_state is None else random_state)
    return (StratifiedKFold if classifier else KFold)(cv, shuffle=True, random_state=seed)


def _positions(index: Any, n: int) -> Index:
    """Rows of a split as positions; a mask works too."""
    index = np.asarray(index)
    if index.dtype == bool:
        index = np.flatnonzero(index)
    if len(index) and (index.min() < -n or index.max() >= n):
        raise ValueError(f"cv must give rows below {n}, got {index.max()}")
    return np.asarray(index, dtype=np.int64)
