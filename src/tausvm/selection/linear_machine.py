"""What the selections of linear machines share: C, and ε, by warm starts on every fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from ..estimators.atomic import atomic
from ..estimators.data import TrainingSet
from ..estimators.linear_data import linear_training_set
from ..estimators.linear_machine import LinearMachine
from ..estimators.parameters import refuse
from ..losses import Loss
from ..metrics import squared_correlation
from ..operators import LinearOperator
from ..solvers import SolverOptions, SolverResult
from ..solvers.units import spread
from .scoring import Score, make_scores
from .settings import WalkSettings
from .splits import split_rows
from .walk import FoldSelection, Scored, Walk, check_values

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: what is reported of every fold beside its score
MEASURES = ("mse", "squared_correlation")


class LinearSelection(RegressorMixin, FoldSelection):
    """Base of the estimators that choose C and ε of a linear machine."""

    _machine_class: type[LinearMachine]

    epsilon: float
    #: selections of versions that had one ε alone
    epsilons: Any = None
    scale_C: bool

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _judges(self, losses: Sequence[Loss]) -> list[Loss]:
        """The losses by which levels are judged when no scoring is given.

        Where ε is chosen they are those without it: losses of different ε cannot be compared.
        """
        if self.epsilons is None:
            return list(losses)
        return list(self._machine(epsilon=0.0)._losses())

    @atomic
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Choose C, and ε where that is asked for, and fit.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,) or None
            Weights of the rows, in the fits and in the validation.
        groups : array of shape (n_samples,) or None
            For splitters that keep groups together; with an integer ``cv`` it makes
            :class:`~sklearn.model_selection.GroupKFold` of it.

        Returns
        -------
        self
        """
        started = self._clock()
        machine = self._machine()
        losses = machine._losses()
        machine._check_parameters()
        asked, tubes = self._check_selection(), self._check_epsilons()
        data = linear_training_set(self, X, y, sample_weight)
        scores = make_scores(self.scoring, self._judges(losses), data.y)
        others = self._others(tubes, spread(data.y, data.weight))
        costs = asked
        if isinstance(costs, int):
            rows = LinearOperator(data.X)
            costs = self._default_costs(rows, data, losses[0], costs)
        task = LinearTask(machine, data, self._tubes(others), scores, costs, self._settings.walk)
        folds = split_rows(self.cv, data, groups, self.random_state)
        done = self._on_folds([partial(task.scored, *rows) for rows in folds], machine._options())
        self._warn(done)
        self._choose(done, others, costs, MEASURES)
        self._refit(started, lambda best: best.fit(data.X, data.y, sample_weight=data.weight))
        return self

    def _default_costs(
        self, rows: LinearOperator, data: TrainingSet, loss: Loss, number: int
    ) -> Array:
        """So many values of C, spread over what these rows can need."""
        weight = data.weight
        n = float(weight.sum())
        unit = 1.0 if self.scale_C else spread(data.y, weight)
        length = float(weight @ rows.squares()) / n
        return cost_grid(n, length, unit, loss, number, self._settings.walk)

    def _check_epsilons(self) -> int | Array | None:
        """The values of ε asked for, how many, or None where it is not chosen."""
        wanted = "None, a number of grid points >= 1 or a list of finite values >= 0"
        given = self.epsilons
        if given is None:
            return None
        if np.ndim(given) > 0:
            return check_values("epsilons", given, wanted)
        if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < 1:
            raise refuse("epsilons", wanted, given)
        return int(given)

    def _others(self, tubes: int | Array | None, unit: float) -> list[dict[str, float]]:
        """The parameters beside C at every point of the grid; ``unit`` is the spread of y."""
        if tubes is None:
            return [{}]
        if isinstance(tubes, int):
            low, high = self._settings.walk.epsilons
            tubes = unit * (np.geomspace(low, high, tubes) if tubes > 1 else np.array([low]))
        return [{"epsilon": float(epsilon)} for epsilon in tubes]

    def _tubes(self, others: Sequence[dict[str, float]]) -> list[list[Loss]]:
        """The losses of every level, for each of the other parameters."""
        return [list(self._machine(**point)._losses()) for point in others]

    def predict(self, X: Any, raw: bool = False) -> Array:
        """Predict at the rows of X with the chosen machines.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        raw : bool
            The functions that were fitted and certified, before ``ordered``.

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_levels) for a list of levels
        """
        values = np.stack([machine.predict(X, raw=raw) for machine in self._fitted], axis=1)
        if not raw:
            values = self._in_order(values)
        return values[:, 0] if self._one_choice else values

    def _in_order(self, values: Array) -> Array:
        """Values, (n, n_levels), with the levels in order where the machine has several."""
        return values


@dataclass(frozen=True)
class LinearTask:
    """What all fits of a selection share.

    ``tubes`` has the losses of every level for each of the other parameters, ``scores`` those of
    the levels.
    """

    machine: LinearMachine
    data: TrainingSet
    tubes: list[list[Loss]]
    scores: list[Score]
    costs: Array
    settings: WalkSettings

    def scored(self, train: Index, validation: Index, options: SolverOptions) -> Scored:
        """All points on one fold.

        Every level and ε is a walk up C, which begins where the walk before it did.
        """
        data = self.data
        part = TrainingSet(None, data.y[train], data.weight[train], train, len(train))
        posing = self.machine._posing(part)
        # rows of their own: folds may run side by side
        inside, outside = LinearOperator(data.X, train), LinearOperator(data.X, validation)
        y, weight = data.y[validation], data.weight[validation]
        shape = len(self.scores), len(self.tubes), len(self.costs), 1 + len(MEASURES)
        table = np.full(shape, np.nan)
        solver = self.settings.linear if self.machine._solver == "auto" else self.machine._solver
        walk = Walk(solver, options, shape[0] * shape[1], self.settings)
        first: SolverResult | None = None
        for level in self.machine._order():
            for other, losses in enumerate(self.tubes):
                problem = partial(posing.problem, inside, losses[level])
                for k, found in enumerate(walk.up(problem, self.costs, first)):
                    first = found if k == 0 else first
                    prediction = outside.values(found.function) + found.intercept
                    table[level, other, k] = (
                        self.scores[level](y, prediction, weight),
                        float(weight @ (y - prediction) ** 2 / weight.sum()),
                        squared_correlation(y, prediction, weight),
                    )
        return Scored(table, walk.unsolved)


def cost_grid(
    n: float, length: float, unit: float, loss: Loss, number: int, settings: WalkSettings
) -> Array:
    """C = 1/(2nλ), λ from 1 to 0.001/n, for rows of length one and y of spread one.

    ``length`` is the mean square of the rows' lengths, ``unit`` the spread of y in units of C.
    """
    scale = 1.0 / length if length > 0 else 1.0
    if np.isfinite(loss.dual_terms(np.ones(1), np.ones(1)).upper[0]):  # grows linearly
        scale *= 2.0 * unit
    low, high = scale / (2.0 * n), scale / (2.0 * settings.smallest_lambda)
    if not 0 < low < high < np.inf:
        raise ValueError(
            f"Cs must be given as values where X, y or sample_weight have such a size: {number} of "
            f"them would be spread from {low:g} to {high:g}"
        )
    return np.geomspace(low, high, number) if number > 1 else np.array([np.sqrt(low * high)])
