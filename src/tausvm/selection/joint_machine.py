"""What the selections of joint machines share: C, γ, γ_τ and ε on shared Gram matrices."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state

from ..estimators.atomic import atomic
from ..estimators.data import TrainingSet, training_set
from ..estimators.joint_machine import JointMachine, JointPosing
from ..estimators.parameters import refuse, seed_of
from ..kernels import TransformableKernel
from ..operators import MatrixOperator, SeparableKernel
from ..solvers import SolverOptions, SolverResult
from .grid import check_axis, distance_gamma
from .scoring import JointLoss, Score, make_score
from .settings import WalkSettings
from .splits import split_rows
from .walk import OWN_PARAMETERS, KernelSelection, Scored, Walk, check_values

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: γ from the distances of the rows
BY_DISTANCE = "distance_quantile"


class JointSelection(RegressorMixin, KernelSelection):
    """Base of the estimators that choose C, γ, γ_τ and ε of a joint machine."""

    _machine_class: type[JointMachine]
    _own_parameters = (*OWN_PARAMETERS, "gammas", "gamma_taus")

    epsilons: Any
    scale_C: bool
    cache_size: float

    def _lists(self) -> dict[str, Array]:
        """The parameters beside C and γ that are chosen, with their values."""
        if self.epsilons is None:
            return {}
        wanted = "None or a list of finite values >= 0"
        return {"epsilon": check_values("epsilons", self.epsilons, wanted)}

    @atomic
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Choose the parameters, and fit.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Features; the Gram matrix (n_samples, n_samples) for ``kernel="precomputed"``.
        y : array of shape (n_samples,)
            Targets; of a :class:`JointSVRCV` also (n_samples, n_outputs).
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
        # a γ by name is one of the machine's own; those of the selection are numbers
        machine = self._machine(gamma="scale")
        machine._check_joint()
        asked, gammas, lists = self._check_selection(), self._check_gammas(), self._lists()
        data = training_set(self, X, y, sample_weight, self._precomputed, **machine._target_checks)
        targets = machine._targets(data.y)
        mixing = machine._mixing(targets.shape[1])
        flat = machine._one_axis(data.y)
        own = JointLoss(machine._output_losses(targets.shape[1]))
        score = make_score(self.scoring, own, data.y, targets[:, 0] if flat else targets)
        axis = self._gammas(gammas, data)
        costs = asked
        if isinstance(costs, int):
            unit = machine._posing(data, targets).cost_unit
            costs = self._default_costs(unit, data, mixing, axis, costs)
        tails = [dict(zip(lists, values, strict=True)) for values in product(*lists.values())]
        tails = [{name: float(value) for name, value in tail.items()} for tail in tails]
        named = [{"gamma": gamma} for gamma in axis] if axis else [{}]
        folds = split_rows(self.cv, data, groups, self.random_state)
        task = JointTask(
            self._machine, data, targets, tails, Judge(score, flat), costs, self._settings.walk
        )
        workers = min(effective_n_jobs(self.n_jobs), len(folds) * len(named))
        grams = [SharedGram(task.gram(point, workers), len(folds)) for point in named]
        jobs = [
            partial(task.scored, point, gram, *rows)
            for point, gram in zip(named, grams, strict=True)
            for rows in folds
        ]
        options = SolverOptions(max_iter=machine.max_iter, seed=seed_of(machine.random_state))
        parts = self._on_folds(jobs, options)
        done = self._by_fold(parts, len(folds))
        self._warn(done)
        self._choose(done, [{**point, **tail} for point in named for tail in tails], costs)
        self.gammas_ = np.array(axis)
        self._refit(started, lambda best: best.fit(X, y, sample_weight=sample_weight))
        return self

    def _check_gammas(self) -> int | str | Array:
        if not isinstance(self.gammas, str):
            return check_axis("gammas", self.gammas)
        if self.gammas != BY_DISTANCE:
            wanted = f"a number of grid points >= 1, a list of values > 0 or {BY_DISTANCE!r}"
            raise refuse("gammas", wanted, self.gammas)
        if self.kernel != "rbf":
            raise refuse("kernel", f"'rbf' for gammas={BY_DISTANCE!r}", self.kernel)
        return BY_DISTANCE

    def _gammas(self, asked: int | str | Array, data: TrainingSet) -> list[float]:
        """The values of γ; none for a kernel without."""
        if not isinstance(asked, str):
            return self._gamma_axis(asked, data)
        seed = check_random_state(0 if self.random_state is None else self.random_state)
        return [distance_gamma(data.X, data.weight, seed, self._settings.distances)]

    def _default_costs(
        self, unit: float, data: TrainingSet, mixing: Any, gammas: list[float], number: int
    ) -> Array:
        """So many values of C, which counts in ``unit`` over the mean of B's diagonal."""
        if isinstance(mixing, TransformableKernel):
            data = replace(data, X=mixing.images(data.X)[0])
        else:
            unit = unit / float(np.diagonal(mixing).mean())
        return self._cost_axis(number, data, unit, gammas)

    def predict(self, X: Any) -> Array:
        """Predict at the rows of X with the chosen machine.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Kernel values with the training rows, (n_samples, n_training), for
            ``kernel="precomputed"``.

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_outputs)
        """
        values: Array = self._fitted[0].predict(X)
        return values


class SharedGram:
    """The kernel matrix of all rows, computed when the first fold asks and let go by the last."""

    def __init__(self, make: Callable[[], Array] | None, uses: int) -> None:
        self.make, self.uses = make, uses
        self.lock = threading.Lock()
        self.matrix: Array | None = None

    def part(self, train: Index, validation: Index) -> tuple[Array, Array] | None:
        """Values among the training rows, and of the others with them; None if not shared."""
        if self.make is None:
            return None
        with self.lock:
            if self.matrix is None:
                self.matrix = self.make()
            whole = self.matrix
            self.uses -= 1
            if self.uses == 0:
                self.matrix = None
        return whole[np.ix_(train, train)], whole[np.ix_(validation, train)]


class Judge(NamedTuple):
    """How values (n, p) are judged; ``flat`` where predictions have one axis."""

    score: Score
    flat: bool

    def __call__(self, y: Array, values: Array, weight: Array) -> float:
        return self.score(y, values[:, 0] if self.flat else values, weight)


class Kernelled(NamedTuple):
    """K of a fold's training rows for one γ and γ_τ, and how solutions predict."""

    operator: MatrixOperator
    predict: Callable[[SolverResult], Array]


@dataclass(frozen=True)
class JointTask:
    """What all fits of a selection share.

    ``machine`` makes the machine of a point, ``tails`` has the parameters beside C and γ at every
    point.
    """

    machine: Callable[..., JointMachine]
    data: TrainingSet
    targets: Array
    tails: list[dict[str, float]]
    judge: Judge
    costs: Array
    settings: WalkSettings

    def gram(self, point: dict[str, float], workers: int) -> Callable[[], Array] | None:
        """What computes the matrix of all rows; None where there is no room for it beside others.

        Folds compute their own then.
        """
        machine, n = self.machine(**point), len(self.data)
        if isinstance(machine.output_kernel, TransformableKernel):
            return None
        if machine._precomputed:
            return lambda: self.data.X
        if 8.0 * n * n * 2 * workers > machine.cache_size * 2**20:
            return None
        return lambda: self._whole(machine)

    def _whole(self, machine: JointMachine) -> Array:
        matrix = machine._filled(self.data, None, SolverOptions())
        assert matrix is not None  # without a deadline
        return matrix

    def scored(
        self,
        point: dict[str, float],
        gram: SharedGram,
        train: Index,
        validation: Index,
        options: SolverOptions,
    ) -> Scored:
        """All points of one γ on one fold, each combination of the others a walk up C."""
        data, targets = self.data, self.targets
        X = data.X[np.ix_(train, train)] if self.machine()._precomputed else data.X[train]
        part = TrainingSet(X, data.y[train], data.weight[train], train, len(train))
        held = gram.part(train, validation)
        y, weight = data.y[validation], data.weight[validation]
        table = np.full((1, len(self.tails), len(self.costs), 1), np.nan)
        walk: Walk | None = None
        first: SolverResult | None = None
        posing: JointPosing | None = None
        kernels: dict[float | None, Kernelled] = {}
        for k, tail in enumerate(self.tails):
            machine = self.machine(**point, **tail)
            if walk is None or posing is None:
                walk = Walk(machine._solver, options, len(self.tails), self.settings)
                posing = machine._posing(part, targets[train])
            coupling = tail.get("gamma_tau")
            if coupling not in kernels:
                kernels[coupling] = self._kernelled(machine, part, held, validation)
            operator, predict = kernels[coupling]
            problem = partial(posing.problem, operator, epsilon=machine.epsilon)
            for c, found in enumerate(walk.up(problem, self.costs, first)):
                first = found if c == 0 else first
                values = machine._in_order(predict(found))
                table[0, k, c, 0] = self.judge(y, values, weight)
        assert walk is not None
        return Scored(table, walk.unsolved)

    def _kernelled(
        self,
        machine: JointMachine,
        part: TrainingSet,
        held: tuple[Array, Array] | None,
        validation: Index,
    ) -> Kernelled:
        mixing = machine._mixing(self.targets.shape[1])
        if held is None:
            operator = machine._operator(part, mixing, None, SolverOptions())
            rows = self.data.X[validation]
            machine.n_features_in_ = rows.shape[1]

            def by_machine(found: SolverResult) -> Array:
                machine._keep_joint(part, found)
                return machine._decision_values(rows)

            return Kernelled(operator, by_machine)
        inside, outside = held
        assert not isinstance(mixing, TransformableKernel)
        features = part.X if machine.kernel == "linear" else None
        separable = SeparableKernel(inside, mixing, features)
        separable.room = machine._room(len(part), len(mixing), 0.0)
        return Kernelled(separable, lambda found: outside @ (found.beta @ mixing) + found.intercept)
