"""TauPathSVC with C and γ chosen for every cost ratio at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ..estimators.atomic import atomic
from ..estimators.classification import TauSVC
from ..estimators.data import TrainingSet, training_set
from ..estimators.machine import slices
from ..estimators.parameters import check_choice, check_positive, is_real, refuse
from ..estimators.path import TauPathSVC
from ..estimators.path_machine import MIDDLE, check_inner_level, check_level, check_levels
from ..solvers import SolverOptions
from ..solvers.path import PathResult
from ..solvers.result import Status
from .cost_curves import cost_at, cost_curve, integrated_cost, joined
from .grid import check_axis
from .results import equal_to_best
from .splits import split_rows
from .walk import KernelSelection, Scored

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: what ``select_by`` may be beside a level
INTEGRATED, EQUAL_COSTS = "integrated", "equal_costs"
#: what a grid of C counts in: labels −1 and 1 have a spread of about 1, as regression has it
LABEL_UNIT = 2.0


class TauPathSVCCV(ClassifierMixin, KernelSelection):
    """:class:`TauPathSVC` with C and γ chosen by cross-validation, for every cost ratio at once.

    On every fold, at every point of the grid, the whole τ path is fitted, and what its decisions
    cost on the rows that it has not seen is kept for all levels. So the cost of a missed positive
    and of a false alarm may be named after training: :meth:`best_at`, :meth:`for_costs` and
    :meth:`select` give the machine whose C and γ are best for them. Nothing is fitted then.

    Parameters
    ----------
    Cs : int or list of float
        How many values, spread over what the data can need, or the values.
    gammas : int or list of float
        The same for γ; without effect for kernels without it.
    cv : int, splitter or iterable
        Folds, with equal shares of the classes and shuffled where it is a number (of whole groups
        where ``groups`` are given); as in scikit-learn otherwise.
    select_by : {"integrated", "equal_costs"} or float
        What ``best_params_`` are best for, the machine that predicts where no level is asked for:
        the cost integrated over all levels, which is the Brier score of ``predict_proba`` but for
        decisions that flip more than once; that of equal costs, the share of wrong decisions, as
        the paper chooses; or the cost at a level.
    refit : bool
        Whether to fit all data at the points that are best: for ``select_by``, and at some level.
    n_jobs : int or None
        Folds and γ at a time, in threads.
    time_limit : float or None
        Seconds for everything: four fifths for the folds, in equal parts, and what is left for the
        last fits. Points for which there was no time on every fold are not chosen; a
        :class:`~sklearn.exceptions.ConvergenceWarning` tells how many these are.
    random_state : int, RandomState or None
        Of the shuffle of the folds; None is the same every time.
    kernel, degree, coef0, tol, fit_intercept, penalise_intercept, cache_size, memory_limit, \
verbose, max_iter
        As in :class:`TauPathSVC`.

    Attributes
    ----------
    classes_ : array (n_classes,)
    best_params_ : dict
        The best C, and γ of kernels with one, for ``select_by``; the smallest where several are
        equal.
    best_score_ : float
        Minus the cost that they have by ``select_by``.
    best_index_ : int
    best_estimator_ : TauPathSVC
        With ``refit=True``.
    machines_ : list of TauPathSVC
        The machines of all rows at the points that are best at one of the levels 0.01, 0.02, …,
        0.99, and ``best_estimator_`` among them.
    machine_index_ : array of int
        Which points of the grid these are.
    dual_gap_ : float
        No level of ``best_estimator_`` has a larger relative duality gap.
    cv_results_ : dict
        As scikit-learn's searches have it; beside the scores the costs of every fold, integrated
        and at equal costs: ``mean_test_integrated_cost``, ``mean_test_equal_cost``, ….
    curves_ : list of lists of array (3, n_steps)
        By point and fold, what is known of the errors at all levels
        (:mod:`tausvm.selection.cost_curves`).
    Cs_, gammas_ : arrays
    n_splits_ : int
    n_iter_ : int
        Points of the grid times folds.
    n_features_in_, feature_names_in_
        As in :class:`SVR`.

    Notes
    -----
    For more than two classes the cost at a level is the mean of those of each class against the
    rest.

    Where a path has more than 1,000 kinks its decisions are looked at on 1,000 levels, as in
    :meth:`TauPathSVC.predict_proba`.

    References
    ----------
    J. Yu, S. V. N. Vishwanathan and J. Zhang, "The Entire Quantile Path of a Risk-Agnostic
    SVM Classifier" (2009).

    Examples
    --------
    >>> import numpy as np
    >>> from tausvm import TauPathSVCCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(150, 2))
    >>> y = rng.uniform(size=150) < 1 / (1 + np.exp(-3 * X[:, 0]))
    >>> model = TauPathSVCCV(Cs=[0.1, 1.0, 10.0], gammas=[0.01, 0.1, 1.0]).fit(X, y)
    >>> sorted(model.best_params_)
    ['C', 'gamma']

    Costs that became known after training: a missed positive is nine times as bad.

    >>> cautious = model.select([[0, 1], [9, 0]])
    >>> float(round(cautious.tau, 3))
    0.1
    >>> bool(cautious.predict(X).mean() > model.predict(X).mean())
    True
    """

    _machine_class = TauPathSVC
    _own_parameters = (*("Cs", "gammas", "cv", "select_by", "refit", "n_jobs"), "random_state")
    scoring = None

    def __init__(
        self,
        *,
        Cs: int | Sequence[float] = 10,
        gammas: int | Sequence[float] = 5,
        cv: Any = 5,
        select_by: str | float = INTEGRATED,
        refit: bool = True,
        n_jobs: int | None = None,
        kernel: str | Callable[..., Array] = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-6,
        fit_intercept: bool = True,
        penalise_intercept: bool = False,
        cache_size: float = 2000,
        memory_limit: float = 1000,
        time_limit: float | None = None,
        verbose: bool = False,
        max_iter: int = -1,
        random_state: Any = None,
    ) -> None:
        self.Cs = Cs
        self.gammas = gammas
        self.cv = cv
        self.select_by = select_by
        self.refit = refit
        self.n_jobs = n_jobs
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.penalise_intercept = penalise_intercept
        self.cache_size = cache_size
        self.memory_limit = memory_limit
        self.time_limit = time_limit
        self.verbose = verbose
        self.max_iter = max_iter
        self.random_state = random_state

    @property
    def selection_tol(self) -> float:  # type: ignore[override]
        """The gap of the fits on folds: a larger one would not save time."""
        return self.tol

    @atomic
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Find the paths of all points on all folds, and of all rows where one is best.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Features; the Gram matrix (n_samples, n_samples) for ``kernel="precomputed"``.
        y : array of shape (n_samples,)
            Labels of two classes or more, of any type.
        sample_weight : array of shape (n_samples,) or None
            Weights of the rows, in the fits and in the validation.
        groups : array of shape (n_samples,) or None
            For splitters that keep groups together; with an integer ``cv`` it makes
            :class:`~sklearn.model_selection.StratifiedGroupKFold` of it.

        Returns
        -------
        self
        """
        started = self._clock()
        self._machine()._check_parameters()
        self._check_select_by()
        asked, gammas = self._check_selection(), check_axis("gammas", self.gammas)
        data = training_set(self, X, y, sample_weight, self._precomputed)
        check_classification_targets(data.y)
        self.classes_ = np.unique(data.y)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y must hold at least two classes, got one class only: {self.classes_[0]!r}"
            )
        axis = self._gamma_axis(gammas, data)
        costs = asked
        if isinstance(costs, int):
            costs = self._cost_axis(costs, data, LABEL_UNIT, axis)
        folds = split_rows(self.cv, data, groups, self.random_state, column_or_1d(y))
        self._check_folds(data, folds)
        others = [{"gamma": gamma} for gamma in axis] if axis else [{}]
        task = PathTask(self._machine, data, self.classes_, costs, self._score)
        jobs = [partial(task.scored, point, *rows) for point in others for rows in folds]
        found = self._on_folds(jobs, SolverOptions())
        self._tell(found, others, costs, len(folds))
        self.gammas_ = np.array(axis)
        for name in ("machines_", "machine_index_"):
            self.__dict__.pop(name, None)
        if self.refit:
            self._fit_machines(X, y, sample_weight, started)
        return self

    def _tell(
        self,
        found: Sequence[tuple[Scored, list[Array | None]]],
        others: list[dict[str, float]],
        costs: Array,
        n_folds: int,
    ) -> None:
        """Set what is known of the grid."""
        done = self._by_fold([scored for scored, _ in found], n_folds)
        self._warn(done)
        self._choose(done, others, costs, ("integrated_cost", "equal_cost"))
        # points in the order of the table: C outside, γ inside
        nothing = np.full((3, 1), np.nan)
        curves: list[list[list[Array]]] = [[[] for _ in others] for _ in costs]
        for k, (_, of_costs) in enumerate(found):
            for c, curve in enumerate(of_costs):
                curves[c][k // n_folds].append(nothing if curve is None else curve)
        self.curves_ = [of_folds for of_others in curves for of_folds in of_others]

    def _check_select_by(self) -> None:
        level = self.select_by
        if not (is_real(level) and 0 < float(level) < 1):
            check_choice("select_by", level, (INTEGRATED, EQUAL_COSTS), "a level in (0, 1)")

    def _score(self, curve: Array) -> float:
        """Minus the cost that ``select_by`` names."""
        if isinstance(self.select_by, str) and self.select_by == INTEGRATED:
            return -integrated_cost(curve)
        return -cost_at(curve, MIDDLE if isinstance(self.select_by, str) else self.select_by)

    def _check_folds(self, data: TrainingSet, folds: Sequence[tuple[Index, Index]]) -> None:
        for k, (train, _) in enumerate(folds):
            missing = np.setdiff1d(self.classes_, data.y[train])
            if len(missing):
                raise ValueError(
                    "cv must leave rows of every class for training in every fold, got none of "
                    f"class {missing[0]!r} in fold {k}"
                )

    def _fit_machines(self, X: Any, y: Any, sample_weight: Any, started: float) -> None:
        """Set the machines of all rows, those first that are best at most levels."""
        even = np.linspace(0.0, 1.0, self._settings.walk.levels + 2)[1:-1]
        everything = np.arange(len(self.curves_))
        times = Counter(self._best_index(float(tau), everything) for tau in even)
        others = [index for index, _ in times.most_common() if index != self.best_index_]
        points = [self.cv_results_["params"][index] for index in (self.best_index_, *others)]
        machines = []
        for k, point in enumerate(points):
            machine = self._machine(**point)
            if self.time_limit is not None:
                left = max(self.time_limit - (self._clock() - started), 1e-9)
                machine.time_limit = left / (len(points) - k)
            machines.append(machine.fit(X, y, sample_weight))
            machine.time_limit = self.time_limit
        self.machines_ = machines
        self.machine_index_ = np.array([self.best_index_, *others])
        self.best_estimator_ = machines[0]
        self.dual_gap_ = float(np.max(machines[0].dual_gap_))

    # ---- what is known of every level ----

    def costs_at(self, tau: float) -> Array:
        """What decisions cost at a level on the rows that were not fitted.

        Parameters
        ----------
        tau : float
            In [0, 1].

        Returns
        -------
        array of shape (n_points, n_splits)
            2(1 − τ) a missed positive and 2τ a false alarm, averaged over the rows of a fold, in
            the order of ``cv_results_``; NaN where there was no time.
        """
        check_is_fitted(self, "curves_")
        tau = check_level(tau)
        return np.array([[_known(curve, tau) for curve in folds] for folds in self.curves_])

    def _best_index(self, tau: float, among: NDArray[np.intp]) -> int:
        """The best point at a level among some; the first of equals."""
        means = -self.costs_at(tau).mean(axis=1)[among]
        ranked = np.argsort(among)
        return int(among[ranked[np.flatnonzero(equal_to_best(means[ranked]))[0]]])

    def best_params_at(self, tau: float) -> dict[str, float]:
        """The C and γ whose decisions cost least at a level, among all points of the grid.

        Parameters
        ----------
        tau : float
            Strictly between 0 and 1.
        """
        tau = self._inner_level(tau)
        point: dict[str, float] = self.cv_results_["params"][
            self._best_index(tau, np.arange(len(self.curves_)))
        ]
        return point

    def _inner_level(self, tau: Any) -> float:
        check_is_fitted(self, "curves_")
        return check_inner_level(tau)

    def _machine_at(self, tau: float) -> TauPathSVC:
        """The machine that is best at a level; that of ``best_params_`` at the ends."""
        check_is_fitted(self, "curves_")
        if not hasattr(self, "machines_"):
            raise AttributeError("predict needs a fitted machine, got refit=False")
        found: TauPathSVC = self.best_estimator_
        if 0 < tau < 1:
            index = self._best_index(tau, self.machine_index_)
            found = self.machines_[int(np.flatnonzero(self.machine_index_ == index)[0])]
        return found

    def best_at(self, tau: float) -> TauSVC:
        """The machine whose decisions cost least at a level, as a fitted :class:`TauSVC`.

        Its C and γ are the best for this level among those of ``machines_``.

        Parameters
        ----------
        tau : float
            Strictly between 0 and 1.
        """
        tau = self._inner_level(tau)
        return self._machine_at(tau).at(tau)

    def for_costs(self, false_positive: float, false_negative: float) -> TauSVC:
        """The machine for these costs of a false alarm and of a missed positive.

        Parameters
        ----------
        false_positive, false_negative : float
            Above 0; only their ratio matters.
        """
        check_positive("false_positive", false_positive)
        check_positive("false_negative", false_negative)
        return self.best_at(false_positive / (false_positive + false_negative))

    def select(self, cost_matrix: Any) -> TauSVC:
        """The machine for a matrix of costs.

        Parameters
        ----------
        cost_matrix : array (2, 2)
            What a row of class ``classes_[i]`` costs that is taken for one of ``classes_[j]``, in
            row i and column j. Errors have to cost more than what is right does.

        Returns
        -------
        TauSVC
            At the level τ = a / (a + b), where a is what a false alarm costs more than a true
            negative, and b a missed positive more than a true positive.
        """
        check_is_fitted(self, "curves_")
        if len(self.classes_) > 2:
            raise ValueError(
                f"cost_matrix needs two classes, got {len(self.classes_)}: levels are of one class "
                "against the rest. Weigh predict_proba with the costs instead"
            )
        matrix = np.asarray(cost_matrix, dtype=np.float64)
        if matrix.shape != (2, 2) or not np.isfinite(matrix).all():
            raise refuse("cost_matrix", "an array (2, 2) of finite numbers", cost_matrix)
        alarm, miss = matrix[0, 1] - matrix[0, 0], matrix[1, 0] - matrix[1, 1]
        if not (alarm > 0 and miss > 0):
            raise refuse("cost_matrix", "larger beside its diagonal than on it", cost_matrix)
        return self.for_costs(float(alarm), float(miss))

    # ---- prediction ----

    def decision_function(self, X: Any, tau: Any = None) -> Array:
        """f(x) + b at one level or several, each by the machine that is best there.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Kernel values with the training rows, (n_samples, n_training), for
            ``kernel="precomputed"``.
        tau : float, array (n_levels,) or None
            In [0, 1]. None is 2·P − 1 with the probabilities P of :meth:`predict_proba`.

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_classes) for more than two classes; for an
        array of levels (n_samples, n_levels), or (n_samples, n_levels, n_classes)
        """
        if tau is None:
            score: Array = self._machine_at(0.0).decision_function(X)
            return score
        return self._by_levels("decision_function", X, tau)

    def predict(self, X: Any, tau: Any = None) -> NDArray[Any]:
        """The class of each row of X, at one level or several.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            As in :meth:`decision_function`.
        tau : float, array (n_levels,) or None
            In [0, 1]: by the machine that is best there. None is by ``best_estimator_``: its level
            ½ for two classes, and the most probable one of several.

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_levels) for an array of levels
        """
        if tau is None:
            labels: NDArray[Any] = self._machine_at(0.0).predict(X)
            return labels
        return self._by_levels("predict", X, tau)

    def _by_levels(self, method: str, X: Any, tau: Any) -> Any:
        taus = check_levels(tau)
        found = [getattr(self._machine_at(float(t)), method)(X, tau=float(t)) for t in taus]
        return found[0] if np.ndim(tau) == 0 else np.stack(found, axis=1)

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, by ``best_estimator_``.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            As in :meth:`decision_function`.

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        found: Array = self._machine_at(0.0).predict_proba(X)
        return found


def _known(curve: Array, tau: float) -> float:
    """The cost at a level, NaN where there is no curve."""
    return float("nan") if np.isnan(curve[0, 0]) else cost_at(curve, tau)


class _FoldPath(TauPathSVC):
    """A path on a fold, whose shortcomings the selection tells of."""

    def _warn(self, results: list[PathResult]) -> None:
        self.late = any(result.status is Status.TIME_LIMIT for result in results)


@dataclass(frozen=True)
class PathTask:
    """What all fits of a selection share."""

    machine: Callable[..., TauPathSVC]
    data: TrainingSet
    classes: NDArray[Any]
    costs: Array
    score: Callable[[Array], float]

    def scored(
        self, point: dict[str, float], train: Index, validation: Index, options: SolverOptions
    ) -> tuple[Scored, list[Array | None]]:
        """All C at one γ on one fold: their measures, and their curves."""
        data, clock = self.data, options.clock
        ends = None if options.time_limit is None else clock() + options.time_limit
        table = np.full((1, 1, len(self.costs), 3), np.nan)
        curves: list[Array | None] = [None] * len(self.costs)
        unsolved = []
        for c, C in enumerate(self.costs):
            if options.callback is not None and options.callback(None):  # type: ignore[arg-type]
                break
            machine = _FoldPath(**self.machine(C=float(C), **point).get_params(deep=False))
            machine.verbose = False
            if ends is not None:
                machine.time_limit = max(ends - clock(), 1e-9) / (len(self.costs) - c)
            inside = np.ix_(train, train) if machine._precomputed else train
            machine.fit(data.X[inside], data.y[train], data.weight[train])
            if machine.late:
                continue
            gap = float(np.max(machine.dual_gap_))
            if gap > machine.tol:
                unsolved.append(gap)
            curve = self._curve(machine, train, validation)
            curves[c] = curve
            table[0, 0, c] = self.score(curve), integrated_cost(curve), cost_at(curve, MIDDLE)
        return Scored(table, unsolved), curves

    def _curve(self, machine: TauPathSVC, train: Index, validation: Index) -> Array:
        """The costs on the validation rows, their mean over the paths."""
        data, several = self.data, len(machine.paths_)
        total = float(data.weight[validation].sum()) * several
        positives = self.classes if several > 1 else self.classes[1:]
        curves = []
        for k, label in enumerate(positives):
            taus = machine._levels(k)
            for part in slices(len(validation), 24 * len(taus)):
                rows = validation[part]
                X = data.X[np.ix_(rows, train)] if machine._precomputed else data.X[rows]
                values = machine._values(machine._rows_to_predict(X), k, taus)
                curves.append(
                    cost_curve(values, taus, data.y[rows] == label, data.weight[rows], total)
                )
        return joined(curves)
