"""``tausvm fit --dask``: machines on a folder of Parquet files, partition by partition."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from .. import inspection
from ..solvers import Status
from ..tabular import FramePreparation
from ..tabular.kinds import CATEGORY, NUMBER
from .columns import Column, choose_columns, learned_columns, read_features
from .errors import InputError, listed
from .fitting import MODEL, PREPARE, FitOptions, Fitted, as_option
from .kinds import Kind
from .progress import watched
from .scores import level_rows
from .settings import Settings
from .tables import Table, column, numbers

#: the address that stands for no cluster: partitions one after another on this machine
LOCAL = "local"
#: what a column without any value holds
NOTHING = "nothing"
#: kinds that can be fitted to partitions
KINDS = ("linear", "quantile", "expectile", "svr")
#: rows from which it is learned what the columns are
SAMPLE_ROWS = 50_000


@dataclass(frozen=True)
class Reading:
    """How a partition becomes features, targets and weights."""

    name: str
    prepare: FramePreparation
    columns: tuple[Column, ...]
    impute: bool
    target: str
    weight: str | None

    def features(self, index: int, part: pd.DataFrame) -> Any:
        """The features of a partition's rows."""
        table = self._table(index, part)
        frame, _ = read_features(table, self.columns, impute=self.impute)
        return np.asarray(self.prepare.transform(frame), dtype=np.float64)

    def values(self, index: int, part: pd.DataFrame, name: str) -> Any:
        """One column as numbers."""
        table = self._table(index, part)
        values = column(table, name, "--target" if name == self.target else "--weight")
        return numbers(values, table.file, name).to_numpy(np.float64)

    def _table(self, index: int, part: pd.DataFrame) -> Table:
        return Table(Path(f"{self.name}, partition {index}"), frame=part.reset_index(drop=True))


def fit_partitions(
    data: Path,
    address: str,
    kind: Kind,
    settings: Settings,
    options: FitOptions,
    console: Console,
) -> Fitted:
    """Read, prepare, fit and score without ever holding all rows."""
    partitioned = _partitioned()
    _check(kind, options)
    with _cluster(address):
        frame = _read(data, options)
        sample = _sample(frame, settings.seed)
        table = Table(data, frame=sample)
        reading, told = _reading(table, options)
        target = str(options.target)
        settings = replace(settings, spread=float(frame[target].std().compute()) or 1.0)
        X, y, weight = _collections(frame, reading)
        machine = _machine(partitioned, kind, settings, options.tune)
        if "feature_groups" in machine.get_params():
            machine.set_params(feature_groups=reading.prepare.feature_groups_.tolist())
        started = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught, watched(machine, console):
            warnings.simplefilter("always")
            try:
                machine.fit(X, y, sample_weight=weight)
            except ValueError as error:
                raise as_option(error) from error
            except (MemoryError, RuntimeError) as error:
                raise InputError(f"--dask: {error}") from error
        seconds = time.perf_counter() - started
        told += [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
        model = Pipeline([(PREPARE, reading.prepare), (MODEL, machine.single())])
        scores, rows = _scores(model, frame, reading)
    states = {row["status"] for row in scores["levels"] if row["status"] is not None}
    card = {
        "kind": kind.name,
        "data": data.name,
        "rows": rows,
        "held_out": 0,
        "format": "table",
        "target": options.target,
        "features": len(reading.columns),
        "columns": [c.as_json() for c in reading.columns],
        "classes": None,
        "weight": options.weight,
        "impute": options.impute,
        "tuned": options.tune,
        "seconds": seconds,
        "passes": int(machine.n_passes_),
        "scores": scores,
    }
    return Fitted(model, card, told, states <= {Status.SOLVED.value})


def _partitioned() -> Any:
    """The part of the library that the extra is for."""
    try:
        from .. import dask
    except ImportError as error:
        raise InputError(f"--dask: {error}") from error
    return dask


def _check(kind: Kind, options: FitOptions) -> None:
    if kind.name not in KINDS:
        raise InputError(f"--dask: fits --kind {listed(KINDS, 4)} only, got --kind {kind.name}")
    if options.holdout:
        raise InputError("--dask: does not work with --holdout; keep some files aside")
    if options.target is None:
        raise InputError("--target: name the column to predict")


@contextmanager
def _cluster(address: str) -> Iterator[None]:
    """Tasks go to the scheduler at an address, or to threads of this process."""
    if address == LOCAL:
        import dask

        with dask.config.set(scheduler="threads"):
            yield
        return
    from distributed import Client

    try:
        client = Client(address)
    except (OSError, ValueError) as error:
        raise InputError(f"--dask: no scheduler answers at {address}: {error}") from error
    with client:
        yield


def _read(data: Path, options: FitOptions) -> Any:
    """The files as a dask dataframe, a partition each or more."""
    import dask.dataframe as dd

    name = str(data)
    files = sorted(glob(str(data / "*.parquet") if data.is_dir() else name))
    if not files:
        raise InputError(f"{name}: no such Parquet files")
    try:
        _check_alike(files, options)
        frame = dd.read_parquet(files)
    except InputError:
        raise
    except Exception as error:  # whatever a reader says about what it could not read
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(f"{name}: cannot be read as parquet: {reason}") from error
    return frame


def _check_alike(files: Sequence[str], options: FitOptions) -> None:
    """An error that names the first file without a column of the others, or with another type."""
    from pyarrow.parquet import read_schema

    first = read_schema(files[0])
    for file in files[1:]:
        schema = read_schema(file)
        for known in first:
            if known.name in options.drop:
                continue
            place = schema.get_field_index(known.name)
            if place < 0:
                raise InputError(f"{file}: has no column {known.name!r}, which {files[0]} has")
            kinds = _holds(schema.field(place).type), _holds(known.type)
            if kinds[0] != kinds[1] and NOTHING not in kinds:
                raise InputError(
                    f"{file}: column {known.name!r} holds {kinds[0]}, in {files[0]} {kinds[1]}; "
                    "--drop leaves a column out"
                )


def _holds(kind: Any) -> str:
    """What a column of a type of Parquet holds; the sizes of numbers do not matter."""
    from pyarrow import types

    if types.is_null(kind):
        return NOTHING
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind):
        return "numbers"
    if types.is_decimal(kind):
        return "numbers"
    if types.is_string(kind) or types.is_large_string(kind):
        return "text"
    return "dates" if types.is_temporal(kind) else str(kind)


def _sample(frame: Any, seed: int) -> pd.DataFrame:
    """Some rows of all partitions, from which it is learned what the columns are."""
    n = len(frame)
    part = frame if n <= SAMPLE_ROWS else frame.sample(frac=SAMPLE_ROWS / n, random_state=seed)
    found: pd.DataFrame = part.compute().reset_index(drop=True)
    found.columns = [str(name) for name in found.columns]
    return found


def _reading(table: Table, options: FitOptions) -> tuple[Reading, list[str]]:
    assert table.frame is not None and options.target is not None
    target = column(table, options.target, "--target")
    y = numbers(target, table.file, options.target).to_numpy(np.float64)
    if options.weight is not None:
        column(table, options.weight, "--weight")
    names = choose_columns(
        table,
        without={name for name in (options.target, options.weight) if name is not None},
        features=options.features,
        drop=options.drop,
        categorical=options.categorical,
        numeric=options.numeric,
    )
    whole = np.isfinite(y)
    kinds = {name: CATEGORY for name in options.categorical if name in names}
    kinds |= {name: NUMBER for name in options.numeric if name in names}
    prepare = FramePreparation(kinds=kinds, max_categories=options.max_categories)
    rows = table.frame.loc[whole, names]
    prepare.fit(rows, y[whole])
    columns, told = learned_columns(table, prepare, options.numeric)
    kept = [c.name for c in columns]
    prepare.set_params(kinds={name: kind for name, kind in kinds.items() if name in kept})
    prepare.fit(rows[kept], y[whole])
    reading = Reading(
        str(table.file), prepare, tuple(columns), options.impute, options.target, options.weight
    )
    return reading, told


def _collections(frame: Any, reading: Reading) -> tuple[Any, Any, Any]:
    """X, y and weights as lazy arrays, partition by partition."""
    import dask.array as da
    from dask import delayed

    from ..dask.partitions import delayed_parts

    width = len(reading.prepare.feature_groups_)
    shared = delayed(reading, traverse=False)

    def vector(name: str) -> Any:
        parts = [
            da.from_delayed(delayed(_values)(shared, k, part, name), (np.nan,), dtype=float)
            for k, part in enumerate(delayed_parts(frame[[name]]))
        ]
        return da.concatenate(parts)

    names = [c.name for c in reading.columns]
    X = da.concatenate(
        [
            da.from_delayed(delayed(_features)(shared, k, part), (np.nan, width), dtype=float)
            for k, part in enumerate(delayed_parts(frame[names]))
        ]
    )
    weight = None if reading.weight is None else vector(reading.weight)
    return X, vector(reading.target), weight


def _features(reading: Reading, index: int, part: pd.DataFrame) -> Any:
    return reading.features(index, part)


def _values(reading: Reading, index: int, part: pd.DataFrame, name: str) -> Any:
    return reading.values(index, part, name)


def _machine(partitioned: Any, kind: Kind, settings: Settings, tune: bool) -> Any:
    """The machine of a kind, as it is for partitions."""
    single = kind.tune(settings) if tune and kind.tune is not None else kind.make(settings)
    return getattr(partitioned, type(single).__name__)(**single.get_params(deep=False))


def _scores(model: Pipeline, frame: Any, reading: Reading) -> tuple[dict[str, Any], int]:
    """Loss and coverage of every level over all partitions, and the number of rows."""
    from dask import compute, delayed

    from ..dask.partitions import delayed_parts

    names = [c.name for c in reading.columns]
    shared, machine = delayed(reading, traverse=False), delayed(model, traverse=False)
    parts = delayed_parts(frame[[*names, reading.target]])
    tasks = [delayed(_scored)(shared, machine, k, part) for k, part in enumerate(parts)]
    found: Sequence[Any] = [one for one in compute(*tasks) if one is not None]
    rows = sum(n for n, _, _ in found)
    table = sum(n * figures for n, figures, _ in found) / rows
    crossings = None
    if found[0][2] is not None:
        crossings = float(sum(n * share for n, _, share in found) / rows)
    taus: Sequence[float | None] = inspection.levels(model) or [None] * len(table)
    levels = [
        inspection.LevelScore(tau, float(loss), float(coverage), float(coverage))
        for tau, (loss, coverage) in zip(taus, table, strict=True)
    ]
    return {"levels": level_rows(model, levels), "crossings": crossings}, rows


def _scored(reading: Reading, model: Pipeline, index: int, part: pd.DataFrame) -> Any:
    """Rows, their mean loss and coverage at every level, and the share of rows that cross."""
    if len(part) == 0:
        return None
    y = reading.values(index, part, reading.target)
    predicted = model.steps[-1][1].predict(reading.features(index, part))
    scored = inspection.score_levels(model, y, predicted)
    figures = np.array([(score.loss, score.coverage) for score in scored])
    return len(part), figures, inspection.crossings(model, predicted)
