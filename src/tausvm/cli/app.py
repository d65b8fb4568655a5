"""The commands: options in, one call each, exit codes out."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from .. import __version__
from ..kernels import KERNELS
from ..persistence import save
from . import errors
from .errors import InputError
from .fitting import MODEL, FitOptions, fit_file
from .kinds import KINDS, Settings, kind_named
from .predicting import (
    check_folder,
    load_model,
    model_input,
    output_format,
    prediction_table,
    write_table,
)
from .progress import error_console
from .show import column_table, parameter_table, print_scores

app = typer.Typer(
    name="tausvm",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help=(
        "Support vector machines at every level: quantiles, expectiles, typical values, and "
        "decisions whose two errors cost differently. Every fit carries a certificate: a bound "
        "on how far it is from the best possible.\n\n"
        "To begin:\n\n"
        "  tausvm fit houses.csv --target price --tau 0.05,0.5,0.95 --save houses.skops\n\n"
        "  tausvm predict houses.skops new.csv -o prices.csv\n\n"
        "  tausvm report houses.skops houses.csv -o report.html"
    ),
    epilog=(
        "Exit codes: 0 done, 2 a file, column or option cannot be used (one line on stderr says "
        "which), 3 fitted and saved but stopped before its duality gap was reached, 130 "
        "interrupted, 1 anything else. Tables go to stdout, messages to stderr."
    ),
)

_KINDS_HELP = "What to estimate. " + " ".join(
    f"[bold]{kind.name}[/bold]: {kind.summary}." for kind in KINDS.values()
)
DATA, SHAPE, PARAMETERS = "Data", "Model", "Parameters"

DataFile = Annotated[
    Path, typer.Argument(metavar="DATA", help="CSV, TSV, Parquet or svmlight file, also .gz.")
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A file that 'fit' saved.")]


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"tausvm {__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options before the command."""


@app.command(
    epilog=(
        "Examples:\n\n"
        "  tausvm fit rent.csv --target rent --tau 0.1,0.5,0.9 --tune --save rent.skops\n\n"
        "  tausvm fit loans.csv --target default --kind svc --positive yes --tau 0.1 "
        "--save loans.skops\n\n"
        "Without --C, C is what 1 would be on a target of unit spread; --tune finds better."
    )
)
def fit(
    data: DataFile,
    save_to: Annotated[
        Path,
        typer.Option(
            "--save", metavar="MODEL", help="Where to save the model.", show_default=False
        ),
    ],
    target: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="The column to predict; svmlight files have their own.",
            rich_help_panel=DATA,
        ),
    ] = None,
    features: Annotated[
        str,
        typer.Option(
            metavar="A,B",
            help="The columns to predict from; all others by default.",
            rich_help_panel=DATA,
        ),
    ] = "",
    drop: Annotated[
        str, typer.Option(metavar="A,B", help="Columns to leave out.", rich_help_panel=DATA)
    ] = "",
    categorical: Annotated[
        str,
        typer.Option(
            metavar="A,B",
            help="Columns of numbers that are codes: one-hot encoded, as text columns are.",
            rich_help_panel=DATA,
        ),
    ] = "",
    max_categories: Annotated[
        int,
        typer.Option(
            min=1, help="Refuse a category column with more values.", rich_help_panel=DATA
        ),
    ] = 50,
    weight: Annotated[
        str | None,
        typer.Option(metavar="COL", help="A column of row weights.", rich_help_panel=DATA),
    ] = None,
    impute: Annotated[
        bool,
        typer.Option(
            "--impute",
            help="Fill missing numbers by the median and missing categories by the most "
            "frequent one; otherwise they are refused, with their rows and columns.",
            rich_help_panel=DATA,
        ),
    ] = False,
    holdout: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="Set this share of the rows aside and score on them, for example 0.25.",
            rich_help_panel=DATA,
        ),
    ] = 0.0,
    kind: Annotated[
        str, typer.Option(metavar="KIND", help=_KINDS_HELP, rich_help_panel=SHAPE)
    ] = "quantile",
    tau: Annotated[
        str | None,
        typer.Option(
            metavar="T,T,…",
            help="Levels strictly between 0 and 1. For a classifier one level: with cost a of a "
            "missed positive and b of a false alarm, τ = b/(a + b).",
            rich_help_panel=SHAPE,
        ),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            metavar="LOSS",
            help="For kinds with a choice: what they estimate.",
            rich_help_panel=SHAPE,
        ),
    ] = None,
    positive: Annotated[
        str | None,
        typer.Option(metavar="LABEL", help="The positive class.", rich_help_panel=SHAPE),
    ] = None,
    tune: Annotated[
        bool,
        typer.Option(
            "--tune",
            help="Choose C and γ by cross-validation, for every level.",
            rich_help_panel=SHAPE,
        ),
    ] = False,
    C: Annotated[
        float | None,
        typer.Option(
            "--C", help="Cost of a unit of loss: large C fits closely.", rich_help_panel=PARAMETERS
        ),
    ] = None,
    gamma: Annotated[
        str,
        typer.Option(
            help="How fast influence fades with distance: a number, scale or auto.",
            rich_help_panel=PARAMETERS,
        ),
    ] = "scale",
    epsilon: Annotated[
        float | None,
        typer.Option(help="Errors below it cost nothing.", rich_help_panel=PARAMETERS),
    ] = None,
    kernel: Annotated[
        str,
        typer.Option(help="linear, poly, rbf, laplacian or sigmoid.", rich_help_panel=PARAMETERS),
    ] = "rbf",
    tol: Annotated[
        float,
        typer.Option(help="The relative duality gap to stop at.", rich_help_panel=PARAMETERS),
    ] = 1e-4,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds for the fit.", rich_help_panel=PARAMETERS)
    ] = None,
    folds: Annotated[int, typer.Option(help="Folds of --tune.", rich_help_panel=PARAMETERS)] = 5,
    grid: Annotated[
        int,
        typer.Option(help="Values of C and of γ that --tune tries.", rich_help_panel=PARAMETERS),
    ] = 10,
    jobs: Annotated[
        int | None, typer.Option(help="Jobs of --tune.", rich_help_panel=PARAMETERS)
    ] = None,
    seed: Annotated[
        int,
        typer.Option(help="Of the folds and the rows set aside.", rich_help_panel=PARAMETERS),
    ] = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the figures as JSON instead of a table.")
    ] = False,
) -> int:
    """Fit a model to a file and save it.

    Text columns are one-hot encoded and numbers scaled, inside the saved model, so that 'predict'
    takes files as they are. The last table shows for every level the loss it minimises, the share
    of targets at or below it, its support vectors, and the duality gap: a gap of 1e-4 means that
    no function has an objective more than 0.01 % below.
    """
    chosen = kind_named(kind)
    if loss == "svr" and tau is not None:
        raise InputError("--tau: --loss svr has no levels")
    settings = Settings(
        tau=_levels(tau, chosen.default_tau, chosen.several, kind),
        C=C,
        gamma=_gamma(gamma),
        epsilon=epsilon,
        kernel=_kernel(kernel),
        tol=tol,
        time_limit=time_limit,
        loss=_loss(loss, chosen.losses, kind),
        folds=folds,
        grid=_at_least("--grid", grid, 1),
        jobs=jobs,
        seed=_at_least("--seed", seed, 0),
    )
    if not 0 <= holdout < 1:
        raise InputError(f"--holdout: must be at least 0 and below 1, got {holdout:g}")
    check_folder(save_to)
    options = FitOptions(
        target=target,
        features=_names(features),
        drop=_names(drop),
        categorical=_names(categorical),
        max_categories=max_categories,
        weight=weight,
        impute=impute,
        holdout=holdout,
        positive=positive,
        tune=tune,
    )
    messages = error_console()
    fitted = fit_file(data, chosen, settings, options, messages)
    try:
        save(fitted.model, save_to, card=fitted.card)
    except OSError as error:
        raise InputError(f"{save_to}: cannot be written: {error.strerror}") from error
    for line in fitted.warnings:
        _say(messages, f"warning: {line}")
    if as_json:
        sys.stdout.write(json.dumps({"model": str(save_to), **fitted.card}) + "\n")
    else:
        console = Console(highlight=False)
        print_scores(console, fitted.card)
        console.print(f"saved to {save_to}", soft_wrap=True, markup=False)
    return errors.SUCCESS if fitted.converged else errors.NOT_CONVERGED


@app.command(epilog="Example:\n\n  tausvm predict rent.skops new.csv -o predicted.csv --keep")
def predict(
    model: ModelFile,
    data: DataFile,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="OUT", help="CSV or Parquet file; stdout by default."
        ),
    ] = None,
    tau: Annotated[
        str | None, typer.Option(metavar="T,T,…", help="Levels, for a model of --kind path.")
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Write the columns of DATA too, before the predictions.")
    ] = False,
) -> int:
    """Predict at the rows of a file.

    Writes one column a level, named after what it is: quantile_0.05, expectile_0.9, prediction; for
    a classifier the label and its decision value. The rows are those of DATA, in their order.
    """
    if output is not None:
        output_format(output)
    loaded, info = load_model(model)
    table, X, told = model_input(data, info.card)
    taus = () if tau is None else _levels(tau, (), True, info.card["kind"])
    predictions = prediction_table(loaded, info.card, X, taus)
    if keep:
        if table.frame is None:
            raise InputError(f"--keep: {data} is svmlight, which has no named columns")
        clash = [name for name in predictions.columns if name in table.frame.columns]
        if clash:
            raise InputError(f"--keep: {data} has a column {clash[0]!r} already")
        kept = table.frame.reset_index(drop=True)
        predictions = kept.join(predictions)
    messages = error_console()
    for line in told:
        _say(messages, f"warning: {line}")
    write_table(predictions, output)
    if output is not None:
        _say(messages, f"{len(predictions)} rows written to {output}")
    return errors.SUCCESS


@app.command(epilog="Example:\n\n  tausvm report rent.skops rent.csv -o report.html")
def report(
    model: ModelFile,
    data: DataFile,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="OUT", help="The HTML file to write.")
    ] = Path("report.html"),
    title: Annotated[str | None, typer.Option(help="The heading of the page.")] = None,
) -> int:
    """Write a page about a model on the rows of a file.

    One HTML file that opens in any browser without a network: the levels against each feature with
    a slider over τ, calibration, residuals, the certificate in plain words, parameters and data.
    Give it rows that the model has not seen, if you have them.
    """
    from ..report import write_report
    from .reporting import report_rows

    check_folder(output)
    loaded, info = load_model(model)
    X, y, told = report_rows(data, info.card)
    messages = error_console()
    for line in told:
        _say(messages, f"warning: {line}")
    try:
        write_report(
            loaded,
            X,
            y,
            output,
            title=title,
            target_name=info.card.get("target"),
            classes=info.card.get("classes"),
            data_name=data.name,
            versions=info.versions,
        )
    except OSError as error:
        raise InputError(f"{output}: cannot be written: {error.strerror}") from error
    Console(highlight=False).print(f"Report: {output.resolve()}", soft_wrap=True, markup=False)
    return errors.SUCCESS


@app.command()
def info(
    model: ModelFile,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> int:
    """Tell what a model is: what it was fitted to, how good it was, and what wrote it."""
    loaded, about = load_model(model)
    machine = loaded.named_steps[MODEL]
    parameters = {name: value for name, value in machine.get_params().items() if name != "verbose"}
    if as_json:
        told = {
            "created": about.created,
            "versions": about.versions,
            "estimator": type(machine).__name__,
            "parameters": {name: _jsonable(value) for name, value in parameters.items()},
            **about.card,
        }
        sys.stdout.write(json.dumps(told) + "\n")
        return errors.SUCCESS
    console = Console(highlight=False)
    print_scores(console, about.card)
    if about.card["classes"]:
        negative, positive = about.card["classes"]
        console.print(f"positive class: {positive}, negative: {negative}", markup=False)
    if about.card["columns"]:
        console.print(column_table(about.card["columns"]))
    console.print(f"{type(machine).__name__}", style="bold")
    console.print(parameter_table(parameters))
    versions = ", ".join(f"{name} {number}" for name, number in about.versions.items())
    console.print(f"\nwritten {about.created} by {versions}", style="dim", markup=False)
    return errors.SUCCESS


@app.command()
def demo(
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The picture; the report goes beside it.")
    ] = Path("demo/fan.png"),
) -> int:
    """Fit quantiles and expectiles to a study of diabetes: tables, a picture and a report."""
    from ..demo import main as run_demo

    return run_demo(["--output", str(output)])


def run(arguments: Sequence[str]) -> int:
    """Run a command; every error is one line on stderr."""
    messages = error_console()
    try:
        code = app(args=list(arguments), prog_name="tausvm", standalone_mode=False)
        if code == errors.INTERRUPTED:
            _say(messages, "interrupted")
        return int(code or 0)
    except InputError as error:
        _say(messages, f"error: {error}")
        return errors.BAD_INPUT
    except (KeyboardInterrupt, typer.Abort):
        _say(messages, "interrupted")
        return errors.INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return errors.SUCCESS
    except Exception as error:
        if hasattr(error, "format_message"):  # an option that typer could not take
            _say(messages, f"error: {_one_line(error.format_message())}")
            return errors.BAD_INPUT
        _say(messages, f"error: {type(error).__name__}: {_one_line(str(error))}")
        return errors.UNEXPECTED


def _say(console: Console, line: str) -> None:
    console.print(f"tausvm: {escape(line)}")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _names(text: str) -> list[str]:
    """Names between commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _levels(
    text: str | None, default: tuple[float, ...], several: bool, kind: str
) -> tuple[float, ...]:
    """Levels between commas, in ascending order."""
    if text is None:
        return default
    if not default and not several:
        raise InputError(f"--tau: --kind {kind} has no levels")
    levels = []
    for part in text.split(","):
        try:
            level = float(part)
        except ValueError as error:
            raise InputError(f"--tau: {part.strip()!r} is not a number") from error
        if not 0 < level < 1:
            raise InputError(f"--tau: levels lie strictly between 0 and 1, got {part.strip()}")
        levels.append(level)
    if len(set(levels)) < len(levels):
        raise InputError(f"--tau: a level occurs twice in {text!r}")
    if not several and len(levels) > 1:
        raise InputError(f"--tau: --kind {kind} takes one level, got {len(levels)}")
    return tuple(sorted(levels))


def _gamma(text: str) -> str | float:
    if text in {"scale", "auto"}:
        return text
    try:
        gamma = float(text)
    except ValueError as error:
        raise InputError(f"--gamma: must be a number, scale or auto, got {text!r}") from error
    if not (gamma > 0 and math.isfinite(gamma)):
        raise InputError(f"--gamma: must be a finite number above 0, got {text}")
    return gamma


def _kernel(name: str) -> str:
    choices = [kernel for kernel in KERNELS if kernel != "precomputed"]
    if name not in choices:
        raise InputError(f"--kernel: must be one of {', '.join(choices)}, got {name!r}")
    return name


def _loss(name: str | None, choices: tuple[str, ...], kind: str) -> str:
    if name is None:
        return choices[0] if choices else ""
    if not choices:
        raise InputError(f"--loss: --kind {kind} has no choice of losses")
    if name not in choices:
        raise InputError(f"--loss: must be one of {', '.join(choices)}, got {name!r}")
    return name


def _at_least(option: str, value: int, least: int) -> int:
    if value < least:
        raise InputError(f"{option}: must be at least {least}, got {value}")
    return value


def _jsonable(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str | list | None) else str(value)
