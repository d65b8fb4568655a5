"""``FramePreparation``: a table with numbers, categories and dates as a matrix of features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import (
    _check_feature_names_in,
    check_consistent_length,
    check_is_fitted,
)

from ..estimators.atomic import atomic
from ..estimators.data import check_weights
from ..estimators.parameters import check_integer, refuse
from .codes import Code, TargetCode
from .kinds import CHOICES, NUMBER, Judge
from .settings import PreparationSettings
from .values import Array, Table, Values, as_numbers, read_table

Index = NDArray[np.int64]


class FramePreparation(TransformerMixin, BaseEstimator):
    """Numbers, categories, dates and what is missing, as features that a kernel can compare.

    Takes a data frame of pandas (one of polars by way of it), an array or a CSR matrix. Each
    column is looked at, and what it is taken for is told in ``columns_``:

    - *number*: scaled to mean 0 and variance 1; where a value is beyond six standard deviations,
      the tails are drawn in by arcsinh first. What is missing becomes the median, with a feature
      that marks it. Text of which nine tenths read as numbers is a number, and the rest of it is
      missing. A number with two values has them as far apart as two categories.
    - *category*: a feature each, two of them √2 apart, as two draws of a number of variance 1 are.
      Missing values are a category of their own; what was not seen in the fit has zeros. Categories
      below a hundredth of the rows are pooled. More than ``max_categories`` are coded by the mean
      target of each, drawn to that of all rows; ``fit_transform`` takes those of other rows.
    - *ordered*: an ordered categorical of pandas, by its place, as a number.
    - *date*: the time elapsed, as a number, with the place in the year, the week and the day, on
      circles, where the dates go around them.
    - *constant* and *identifier* (a text that differs in nine tenths of the rows): left out.

    A sparse matrix stays one: its columns are divided by their largest absolute values.

    Parameters
    ----------
    kinds : dict or None
        What columns are, by name (by number where they have none): "number", "category", "date" or
        "drop". Those not named are decided by what is in them.
    max_categories : int
        Categories that have a feature each.

    Attributes
    ----------
    columns_ : list of dict
        A row a column: its ``name``, ``kind``, ``why`` it is taken for that, and its ``features``.
        ``pandas.DataFrame(preparation.columns_)`` is a table. A single row for a sparse matrix.
    feature_groups_ : int array (n_features_out,)
        The column that each feature comes from.
    n_features_in_ : int
    feature_names_in_ : array of str
        Where X has column names.

    Examples
    --------
    >>> import numpy as np
    >>> from tausvm.tabular import FramePreparation
    >>> X = np.array([[1.5, "red"], [2.5, "blue"], ["?", "red"], [9.0, "green"]], dtype=object)
    >>> preparation = FramePreparation(kinds={0: "number"}).fit(X)
    >>> for column in preparation.columns_:
    ...     print(column["name"], "-", column["kind"], "-", column["why"])
    x0 - number - 3 values; numbers stored as text; '?' in 1 row counts as missing
    x1 - category - 3 categories
    >>> list(preparation.get_feature_names_out())
    ['x0', 'x0_missing', 'x1_blue', 'x1_green', 'x1_red']
    >>> preparation.feature_groups_.tolist()
    [0, 0, 1, 1, 1]
    """

    #: the numbers by which columns are told apart and coded
    _settings = PreparationSettings()
    #: the code of each column, None for one without features
    _codes: list[Code | None]
    #: of a sparse matrix: what its columns are divided by
    _largest: Array | None

    def __init__(self, *, kinds: Mapping[Any, str] | None = None, max_categories: int = 50) -> None:
        self.kinds = kinds
        self.max_categories = max_categories

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        return tags

    @atomic
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn what the columns are.

        Parameters
        ----------
        X : data frame, array or CSR matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,) or None
            Targets, for columns with very many categories.
        sample_weight : array of shape (n_samples,) or None
            A row of weight k counts as k rows, and one of weight 0 is not looked at.

        Returns
        -------
        self
        """
        self.learn(read_table(self, X, reset=True), y, sample_weight)
        return self

    def fit_transform(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None
    ) -> Any:
        """Fit, and transform the same rows.

        A column that is coded by mean targets has those of other rows here, so that no row is
        told its own target; :meth:`transform` takes them from all rows of the fit.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`.
        groups : array of shape (n_samples,) or None
            Rows whose targets are not told to each other either.

        Returns
        -------
        features : array or CSR matrix of shape (n_samples, n_features_out)
        """
        self.fit(X, y, sample_weight)
        table = read_table(self, X, reset=False)
        return self.training_matrix(table, y, sample_weight, groups)

    def transform(self, X: Any) -> Any:
        """The features of the rows of X.

        Parameters
        ----------
        X : data frame, array or CSR matrix of shape (n_samples, n_features)
            With the columns of the fit, in their order.

        Returns
        -------
        features : array or CSR matrix of shape (n_samples, n_features_out)
        """
        check_is_fitted(self, "feature_groups_")
        return self.matrix(read_table(self, X, reset=False))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The names of the features: those of the columns, with a category or a part after them.

        Parameters
        ----------
        input_features : array of str or None
            Names of the columns, where the fit had none.

        Returns
        -------
        names : array of str
        """
        check_is_fitted(self, "feature_groups_")
        names = _check_feature_names_in(self, input_features)
        if self._largest is not None:
            return np.asarray(names, dtype=object)
        found = [
            feature
            for name, code in zip(names, self._codes, strict=True)
            if code is not None
            for feature in code.names(str(name))
        ]
        return np.array(found or [f"{names[0]}_constant"], dtype=object)

    def learn(self, table: Table, y: Any, sample_weight: Any) -> None:
        """Decide about the columns of a table that has been read."""
        check_integer("max_categories", self.max_categories, 1)
        if y is not None:
            check_consistent_length(np.empty(table.n_rows), y)
        weight = check_weights(sample_weight, table.n_rows)
        rows = np.flatnonzero(weight > 0)
        self.n_features_in_ = table.n_columns
        if table.names is not None:
            self.feature_names_in_ = table.names
        asked = self._asked(table)
        if table.sparse is not None:
            self._learn_sparse(table.sparse[rows])
            return
        judge = Judge(weight[rows], _targets(y, rows), int(self.max_categories), self._settings)
        decisions = [judge.decide(c.take(rows), asked.get(k)) for k, c in enumerate(table.columns)]
        self._largest = None
        self._codes = [decision.code for decision in decisions]
        self.columns_ = [
            {
                "name": column.name,
                "kind": decision.kind,
                "why": decision.why,
                "features": [] if decision.code is None else decision.code.names(column.name),
            }
            for decision, column in zip(decisions, table.columns, strict=True)
        ]
        widths = [len(column["features"]) for column in self.columns_]
        groups = np.repeat(np.arange(len(widths)), widths)
        # nothing varies: a feature of zeros, at which a machine is a constant
        self.feature_groups_ = groups if len(groups) else np.zeros(1, dtype=np.int64)

    def _learn_sparse(self, X: Any) -> None:
        largest = np.asarray(abs(X).max(axis=0).toarray(), dtype=np.float64).ravel()
        self._largest = np.where(largest > 0, largest, 1.0)
        self._codes = []
        name = "x0" if X.shape[1] == 1 else f"x0 … x{X.shape[1] - 1}"
        why = "sparse: each divided by its largest absolute value, zeros stay zeros"
        self.columns_ = [{"name": name, "kind": NUMBER, "why": why, "features": []}]
        self.feature_groups_ = np.arange(X.shape[1])

    def _asked(self, table: Table) -> dict[int, str]:
        """What columns are to be, by their number."""
        if self.kinds is None:
            return {}
        if not isinstance(self.kinds, Mapping):
            raise refuse("kinds", "None or a dict of columns and what they are", self.kinds)
        if table.sparse is not None and self.kinds:
            raise refuse("kinds", "None for a sparse matrix, whose columns are numbers", self.kinds)
        given = range(table.n_columns) if table.names is None else table.names
        places: dict[Any, int] = {name: k for k, name in enumerate(given)}
        for name, kind in self.kinds.items():
            if name not in places:
                raise ValueError(f"kinds names a column {name!r}, which X does not have")
            if kind not in CHOICES:
                raise refuse(f"kinds[{name!r}]", "one of " + ", ".join(map(repr, CHOICES)), kind)
        return {places[name]: kind for name, kind in self.kinds.items()}

    def matrix(self, table: Table) -> Any:
        """The features of a table that has been read: an array, or a CSR matrix."""
        if self._largest is None:
            if table.sparse is not None:
                raise ValueError("X must be dense, as it was in fit, got a sparse matrix")
            parts = [code.encode(column) for code, column in self._coded(table)]
            return self._assembled(parts, table.n_rows)
        if table.sparse is None:
            return self._divided(table)
        scaled = table.sparse.copy()
        scaled.data = scaled.data / self._largest[scaled.indices]
        return scaled

    def training_matrix(self, table: Table, y: Any, sample_weight: Any, groups: Any) -> Any:
        """The features of the rows of the fit, none of which is told its own target."""
        if not any(isinstance(code, TargetCode) and code.by_target for code in self._codes):
            return self.matrix(table)
        weight = check_weights(sample_weight, table.n_rows)
        rows, targets = np.flatnonzero(weight > 0), np.zeros(table.n_rows)
        targets[rows] = _targets(y, rows)
        folds = self._folds(table.n_rows, groups)
        parts = [
            code.out_of_fold(column, targets, weight, folds)
            if isinstance(code, TargetCode)
            else code.encode(column)
            for code, column in self._coded(table)
        ]
        return self._assembled(parts, table.n_rows)

    def _divided(self, table: Table) -> Array:
        """Dense rows for what was learned from sparse ones."""
        assert self._largest is not None
        numbers = [as_numbers(column)[0] for column in table.columns]
        features: Array = np.column_stack(numbers) / self._largest
        return features

    def _coded(self, table: Table) -> list[tuple[Code, Values]]:
        """The columns that have features, each with its code."""
        pairs = zip(self._codes, table.columns, strict=True)
        return [(code, column) for code, column in pairs if code is not None]

    def _assembled(self, parts: list[Array], n_rows: int) -> Array:
        width = sum(part.shape[1] for part in parts)
        return np.hstack(parts) if width else np.zeros((n_rows, 1))

    def _folds(self, n_rows: int, groups: Any) -> Index:
        """Which part of the rows each is in; those of a group are in one."""
        members = np.arange(n_rows) if groups is None else np.unique(groups, return_inverse=True)[1]
        shuffled = np.random.default_rng(0).permutation(int(members.max()) + 1)
        return np.asarray(shuffled[members] % self._settings.target_folds, dtype=np.int64)


def _targets(y: Any, rows: Any) -> Array | None:
    """Targets that have a mean, of some rows; None for others."""
    targets = np.asarray(y)
    if targets.ndim == 2 and targets.shape[1] == 1:
        targets = targets[:, 0]
    if targets.ndim != 1 or targets.dtype.kind not in "fiub":
        return None
    numbers = np.asarray(targets[rows], dtype=np.float64)
    return numbers if np.isfinite(numbers).all() else None
