"""``tausvm fit``: from a file and options to a fitted pipeline and its card."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline

from .. import inspection
from ..solvers import Status
from ..tabular import FramePreparation
from ..tabular.kinds import CATEGORY, NUMBER
from .columns import Column, choose_columns, column_words, learned_columns, read_features
from .errors import InputError, listed
from .estimates import as_json, estimate
from .fingerprints import fingerprints, packed
from .formats import ReadOptions
from .kinds import Kind
from .progress import watched
from .scores import classification_scores, regression_scores
from .settings import Settings
from .tables import Table, check_missing, column, numbers, read_table, row_words, rows_where

#: names of the pipeline's steps
PREPARE, MODEL = "prepare", "model"
#: fewer rows than this say nothing
FEWEST_ROWS = 5


@dataclass(frozen=True)
class FitOptions:
    """The options of ``fit`` that are about data."""

    target: str | None
    features: Sequence[str] = ()
    drop: Sequence[str] = ()
    categorical: Sequence[str] = ()
    max_categories: int = 50
    weight: str | None = None
    impute: bool = False
    holdout: float = 0.0
    positive: str | None = None
    tune: bool = False
    numeric: Sequence[str] = ()
    drop_missing_target: bool = False
    reading: ReadOptions | None = None


@dataclass(frozen=True)
class Fitted:
    """A fitted pipeline, what its file will tell, and what was said on the way."""

    model: Pipeline
    card: dict[str, Any]
    warnings: list[str]
    converged: bool


@dataclass(frozen=True)
class Plan:
    """A fit before it begins: all that can be refused has been looked at.

    Attributes
    ----------
    lines : list of str
        What a reader is told: the rows, the columns, what the fit will take.
    facts : dict
        The same for a script.
    """

    table: Table
    data: _Data
    kind: Kind
    settings: Settings
    options: FitOptions
    machine: Any
    prepare: FramePreparation
    X: Any
    columns: list[Column]
    told: list[str]
    train: Any
    test: Any
    lines: list[str]
    facts: dict[str, Any]

    @property
    def held_out(self) -> pd.DataFrame | None:
        """The rows that are set aside, as the file has them; None for a sparse file."""
        if self.table.frame is None:
            return None
        return self.table.frame.iloc[self.test]


def plan_fit(file: Path, kind: Kind, settings: Settings, options: FitOptions) -> Plan:
    """Read and look at everything that a fit needs, and say what it will take."""
    table = read_table(file, options.reading)
    rows_read = table.n_rows
    table = _with_targets(table, options)
    data = _training_data(table, kind, options)
    if not kind.classifies:
        settings = replace(settings, spread=float(np.std(data.y)) or 1.0)
    if table.frame is None and settings.feature_metric == "full":
        raise InputError(f"--feature-metric: full needs dense features, but {file} is sparse")
    train, test = _split(len(data.y), options.holdout, settings.seed)
    weight = None if data.weight is None else data.weight[train]
    try:
        machine = _machine(kind, settings, options.tune)
        one = getattr(machine, "estimator", machine)
        if hasattr(one, "_check_parameters"):
            one._check_parameters()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the same is in what is told
            prepare, X, columns, told = _prepared(table, data, train, weight, options)
    except ValueError as error:
        raise as_option(error) from error
    width = len(prepare.feature_groups_) if columns else int(X.shape[1])
    expected = estimate(kind, settings, (len(train), width), tune=options.tune)
    held = len(test) if options.holdout else 0
    dropped = rows_read - table.n_rows
    lines = [
        _row_words(table, rows_read, dropped, len(train), held, data.classes),
        column_words(prepare, table),
        expected.words(len(train)),
    ]
    facts = {
        "rows_read": rows_read,
        "rows_dropped": dropped,
        "notes": table.notes,
        "expected": as_json(expected),
    }
    return Plan(
        table, data, kind, settings, options, machine, prepare, X, columns, told, train, test,
        lines, facts,
    )  # fmt: skip


def _row_words(
    table: Table, read: int, dropped: int, fitted: int, held: int, classes: list[Any] | None
) -> str:
    """The first line: what was read, how, and what becomes of it."""
    words = [f"{table.file}: {read} rows read"]
    if dropped:
        words.append(f"{dropped} dropped without a target")
    words.append(f"{fitted} to fit" + (f" and {held} held out" if held else ""))
    line = ", ".join(words)
    if table.notes:
        line += f" ({'; '.join(table.notes)})"
    if classes:
        line += f"; positive is {classes[1]!r}, negative {classes[0]!r}"
    return line


def fit_planned(plan: Plan, console: Console) -> Fitted:
    """Fit and score what was planned."""
    data, options, machine = plan.data, plan.options, plan.machine
    train, test, X, columns = plan.train, plan.test, plan.X, plan.columns
    weight = None if data.weight is None else data.weight[train]
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught, watched(machine, console):
        warnings.simplefilter("always")
        try:
            if columns and "feature_groups" in machine.get_params():
                machine.set_params(feature_groups=plan.prepare.feature_groups_.tolist())
            model = Pipeline([(PREPARE, plan.prepare), (MODEL, machine)])
            weights = {f"{step}__sample_weight": weight for step in (PREPARE, MODEL)}
            rows = _rows(data.X[X.columns] if columns else X, train)
            model.fit(rows, data.y[train], **({} if weight is None else weights))
        except ValueError as error:
            raise as_option(error) from error
    seconds = time.perf_counter() - started
    found = isinstance(machine, GridSearchCV)
    if found:  # what is saved is the model that was found, not the search
        model.steps[-1] = (MODEL, machine.best_estimator_)
    told = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
    scores = _scores(model, plan.kind, plan.settings, _rows(X, test), data.y[test])
    if found:
        scores["levels"] = [{**row, **machine.best_params_} for row in scores["levels"]]
    states = {row["status"] for row in scores["levels"] if row["status"] is not None}
    card = {
        "kind": plan.kind.name,
        "data": plan.table.file.name,
        "rows": len(train),
        "held_out": len(test) if options.holdout else 0,
        "format": "svmlight" if plan.table.frame is None else "table",
        "target": options.target,
        "features": int(X.shape[1]),
        "columns": [c.as_json() for c in columns],
        "classes": data.classes,
        "weight": options.weight,
        "impute": options.impute,
        "tuned": options.tune,
        "seconds": seconds,
        "scores": scores,
        "fingerprints": packed(fingerprints(_rows(X, train), data.y[train])),
    }
    return Fitted(model, card, plan.told + told, states <= {Status.SOLVED.value})


@dataclass(frozen=True)
class _Data:
    X: Any
    y: Any
    weight: Any
    classes: list[Any] | None


def _prepared(
    table: Table, data: _Data, train: Any, weight: Any, options: FitOptions
) -> tuple[FramePreparation, Any, list[Column], list[str]]:
    """What prepares the columns, all rows as it is to read them, and what to say about columns."""
    if table.frame is None:
        return FramePreparation(), data.X, [], []
    kinds = {name: CATEGORY for name in options.categorical if name in data.X}
    kinds |= {name: NUMBER for name in options.numeric if name in data.X}
    prepare = FramePreparation(kinds=kinds, max_categories=options.max_categories)
    prepare.fit(data.X.iloc[train], data.y[train], weight)
    columns, told = learned_columns(table, prepare, options.numeric)
    X, more = read_features(table, columns, impute=options.impute)
    prepare.set_params(kinds={name: asked for name, asked in kinds.items() if name in X})
    return prepare, X, columns, told + more


def _with_targets(table: Table, options: FitOptions) -> Table:
    """The rows that have a target; an error for others, unless they may be left out."""
    if table.frame is None or options.target is None:
        return table
    gone = column(table, options.target, "--target").isna()
    if not gone.any():
        return table
    if not options.drop_missing_target:
        rows = row_words(rows_where(gone))
        raise InputError(
            f"{table.file}: column {options.target!r}, the target, is missing in {rows}; give "
            "--drop-missing-target to leave these rows out"
        )
    return replace(table, frame=table.frame[~gone])


def _training_data(table: Table, kind: Kind, options: FitOptions) -> _Data:
    if table.n_rows < FEWEST_ROWS:
        raise InputError(f"{table.file}: has {table.n_rows} rows; a fit needs {FEWEST_ROWS}")
    if table.frame is None:
        return _sparse_data(table, kind, options)
    if options.target is None:
        raise InputError(
            f"--target: name the column to predict; the columns of {table.file} are "
            f"{listed(list(table.frame.columns), 8)}"
        )
    target = column(table, options.target, "--target")
    y, classes = _targets(table, kind, target, options)
    weight = None
    if options.weight is not None:
        weight = _weights(table, options.weight)
    names = choose_columns(
        table,
        without={name for name in (options.target, options.weight) if name is not None},
        features=options.features,
        drop=options.drop,
        categorical=options.categorical,
        numeric=options.numeric,
    )
    return _Data(table.frame[names], y, weight, classes)


def _sparse_data(table: Table, kind: Kind, options: FitOptions) -> _Data:
    given = {
        "--target": options.target,
        "--features": options.features,
        "--drop": options.drop,
        "--categorical": options.categorical,
        "--numeric": options.numeric,
        "--drop-missing-target": options.drop_missing_target,
        "--weight": options.weight,
        "--impute": options.impute,
    }
    for option, value in given.items():
        if value:
            raise InputError(f"{option}: {table.file} is svmlight, which has no named columns")
    target = pd.Series(table.targets, name="target")
    y, classes = _targets(table, kind, target, options)
    return _Data(table.matrix, y, None, classes)


def _targets(
    table: Table, kind: Kind, target: pd.Series, options: FitOptions
) -> tuple[Any, list[Any] | None]:
    """Targets as numbers; for a classifier 1 for the positive class and 0 for the other."""
    if not kind.classifies:
        if options.positive is not None:
            raise InputError(f"--positive: is for classifiers, not for --kind {kind.name}")
        y = numbers(target, table.file, str(target.name)).to_numpy(np.float64)
        rows = rows_where(pd.Series(~np.isfinite(y), index=target.index))
        if rows:
            raise InputError(
                f"{table.file}: column {target.name!r} is infinite in {row_words(rows)}"
            )
        return y, None
    labels = sorted({_plain(value) for value in target}, key=lambda v: (str(type(v)), v))
    where = f"{table.file}: column {target.name!r}"
    if len(labels) < 2:
        raise InputError(f"{where} has one class only: {labels[0]!r}")
    if options.positive is None:
        if len(labels) > 2:
            raise InputError(
                f"{where} has {len(labels)} classes; name the positive one with --positive, "
                f"one of {listed(labels, 8)}"
            )
        positive = labels[1]
    else:
        named = [label for label in labels if str(label) == options.positive]
        if not named:
            raise InputError(
                f"--positive: {options.positive!r} does not occur in column {target.name!r} of "
                f"{table.file}, which has {listed(labels, 8)}"
            )
        positive = named[0]
    others = [label for label in labels if label != positive]
    negative = others[0] if len(others) == 1 else f"not {positive}"
    y = np.array([int(_plain(value) == positive) for value in target])
    return y, [negative, positive]


def _plain(value: Any) -> Any:
    """A label as JSON can hold it: whole numbers without a fraction, else text."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | float | np.integer | np.floating):
        return int(value) if float(value).is_integer() else float(value)
    return str(value)


def _weights(table: Table, name: str) -> Any:
    values = column(table, name, "--weight")
    check_missing(values.to_frame(), table.file, ", the weight")
    weight = numbers(values, table.file, name).to_numpy(np.float64)
    wrong = rows_where(pd.Series(~((weight >= 0) & np.isfinite(weight)), index=values.index))
    if wrong:
        raise InputError(
            f"{table.file}: column {name!r} (--weight) must be finite and not negative, "
            f"got {values.loc[wrong[0] - 1]} in row {wrong[0]}"
        )
    if not weight.any():
        raise InputError(f"{table.file}: column {name!r} (--weight) is 0 in all rows")
    return weight


def _machine(kind: Kind, settings: Settings, tune: bool) -> Any:
    if not tune:
        return kind.make(settings)
    if kind.tune is None:
        raise InputError(f"--tune: does not work with --kind {kind.name}; give --C and --gamma")
    return kind.tune(settings)


def _split(n_rows: int, holdout: float, seed: int) -> tuple[Any, Any]:
    """Rows to fit and rows to score; the same ones where nothing is held out."""
    everything = np.arange(n_rows)
    if not holdout:
        return everything, everything
    train, test = train_test_split(everything, test_size=holdout, random_state=seed)
    if len(train) < FEWEST_ROWS:
        raise InputError(f"--holdout: {holdout:g} leaves {len(train)} of {n_rows} rows for the fit")
    return np.sort(train), np.sort(test)


def _rows(X: Any, rows: Any) -> Any:
    return X.iloc[rows].reset_index(drop=True) if isinstance(X, pd.DataFrame) else X[rows]


def _scores(model: Pipeline, kind: Kind, settings: Settings, X: Any, y: Any) -> dict[str, Any]:
    if not kind.classifies:
        return regression_scores(model, y, inspection.predictions(model, X))
    tau = settings.tau[0]
    if inspection.has_path(model):
        decided = inspection.decisions(model, X, [tau])[:, 0] > 0
    else:
        decided = model.predict(X) == 1
    return classification_scores(model, y == 1, decided, tau)


def as_option(error: ValueError) -> InputError:
    """The complaint of an estimator, with the option that it is about."""
    message = str(error).splitlines()[0]
    about = re.match(
        r"(C|gamma|epsilon|tau|tol|kernel|feature_metric|cv|time_limit|n_jobs)\b", message
    )
    if about is None:
        return InputError(f"the fit failed: {message}")
    option = {"cv": "folds", "n_jobs": "jobs"}.get(about[1], about[1].replace("_", "-"))
    return InputError(f"--{option}: {message}")
