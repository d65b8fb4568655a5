"""The commands: options in, one call each, exit codes out."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from .. import __version__
from . import errors
from .console import error_console, say, warn
from .errors import InputError
from .kinds import KINDS, kind_named
from .options import (
    above_zero,
    at_least,
    check_unused,
    read_costs,
    read_gamma,
    read_kernel,
    read_levels,
    read_loss,
    read_metric,
    read_names,
    read_reading,
    share,
    with_address,
)
from .outputs import check_output
from .settings import Settings

# what takes seconds to load (pandas, scikit-learn) is imported by the commands that need it, so
# that help, the version and completions are there at once

app = typer.Typer(
    name="tausvm",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help=(
        "Support vector machines at every level: quantiles, expectiles, typical values, and "
        "decisions whose two errors cost differently. Every fit carries a certificate: a bound "
        "on how far it is from the best possible.\n\n"
        "To begin:\n\n"
        "  tausvm fit houses.csv --target price --tau 0.05,0.5,0.95 --holdout 0.25 "
        "--holdout-out rest.csv --save houses.skops\n\n"
        "  tausvm report houses.skops rest.csv -o report.html\n\n"
        "  tausvm predict houses.skops new.csv -o prices.csv"
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
#: the options of ``fit``, by the panel of its help that shows them
_data = partial(typer.Option, rich_help_panel="Data")
_model = partial(typer.Option, rich_help_panel="Model")
_parameter = partial(typer.Option, rich_help_panel="Parameters")

DataFile = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="CSV, TSV, text, JSON lines, Excel, Parquet or svmlight file, text also .gz; - is "
        "standard input.",
    ),
]
_reading = partial(typer.Option, rich_help_panel="Reading")
Sep = Annotated[
    str | None,
    _reading("--sep", metavar="CHAR", help="What separates cells: a character, tab or space."),
]
Decimal = Annotated[
    str | None, _reading("--decimal", metavar="CHAR", help="What separates decimals: . or ,")
]
Encoding = Annotated[
    str | None, _reading("--encoding", metavar="NAME", help="utf-8, utf-16, cp1252, latin-1, …")
]
Na = Annotated[
    str, _reading("--na", metavar="A,B", help="Texts that stand for missing values, as ? or -999.")
]
Dates = Annotated[
    str | None,
    _reading("--dates", metavar="ORDER", help="How dates like 3/4/2024 are meant: dmy or mdy."),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for a script.")]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that exists.")]
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
        "C counts in standard deviations of the target and is 1 by default; --tune finds better."
    )
)
def fit(
    data: DataFile,
    save_to: Annotated[
        Path | None,
        typer.Option(
            "--save", metavar="MODEL", help="Where to save the model.", show_default=False
        ),
    ] = None,
    target: Annotated[
        str | None,
        _data(metavar="COL", help="The column to predict; svmlight files have their own."),
    ] = None,
    features: Annotated[
        str, _data(metavar="A,B", help="The columns to predict from; all others by default.")
    ] = "",
    drop: Annotated[str, _data(metavar="A,B", help="Columns to leave out.")] = "",
    categorical: Annotated[
        str,
        _data(
            metavar="A,B",
            help="Columns that are categories, whatever they look like, as numbers that are codes.",
        ),
    ] = "",
    numeric: Annotated[
        str, _data(metavar="A,B", help="Columns that are numbers; words in them are missing.")
    ] = "",
    drop_missing_target: Annotated[
        bool, _data("--drop-missing-target", help="Leave out the rows without a target.")
    ] = False,
    max_categories: Annotated[
        int, _data(min=1, help="A column with more categories is coded by their mean targets.")
    ] = 50,
    weight: Annotated[str | None, _data(metavar="COL", help="A column of row weights.")] = None,
    impute: Annotated[
        bool,
        _data(
            "--impute",
            help="Allow missing values: numbers become the median and are marked, missing text is "
            "a category. Otherwise they are refused, with their rows and columns.",
        ),
    ] = False,
    holdout: Annotated[
        float,
        _data(
            metavar="SHARE",
            help="Set this share of the rows aside and score on them, for example 0.25.",
        ),
    ] = 0.0,
    holdout_out: Annotated[
        Path | None,
        _data(metavar="FILE", help="Write the rows set aside to this CSV or Parquet file."),
    ] = None,
    sep: Sep = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    na: Na = "",
    dates: Dates = None,
    kind: Annotated[str, _model(metavar="KIND", help=_KINDS_HELP)] = "quantile",
    tau: Annotated[
        str | None,
        _model(
            metavar="T,T,…",
            help="Levels strictly between 0 and 1. For a classifier one level: with cost a of a "
            "missed positive and b of a false alarm, τ = b/(a + b).",
        ),
    ] = None,
    loss: Annotated[
        str | None, _model(metavar="LOSS", help="For kinds with a choice: what they estimate.")
    ] = None,
    positive: Annotated[str | None, _model(metavar="LABEL", help="The positive class.")] = None,
    dask: Annotated[
        str | None,
        _data(
            metavar="[ADDRESS]",
            help="Read DATA, a folder or 'pattern' of Parquet files, by partition, for --kind "
            "linear, quantile, expectile or svr: on the Dask cluster whose scheduler has this "
            "address, or on this machine alone.",
        ),
    ] = None,
    tune: Annotated[
        bool, _model("--tune", help="Choose C and γ by cross-validation, for every level.")
    ] = False,
    feature_metric: Annotated[
        str,
        _model(
            metavar="METRIC",
            help="With --tune, for quantile, expectile and svr: learn weights of the features "
            "(diagonal), turn them too (full), whichever predicts better (auto), or leave them as "
            "they are (none).",
        ),
    ] = "auto",
    C: Annotated[
        float | None, _parameter("--C", help="Cost of a unit of loss: large C fits closely.")
    ] = None,
    gamma: Annotated[
        str, _parameter(help="How fast influence fades with distance: a number, scale or auto.")
    ] = "scale",
    epsilon: Annotated[float | None, _parameter(help="Errors below it cost nothing.")] = None,
    kernel: Annotated[
        str,
        _parameter(
            help="linear, poly, rbf, laplacian, exponential or sigmoid; auto is rbf, and with "
            "--tune the better one of rbf and laplacian where the kind learns features."
        ),
    ] = "auto",
    tol: Annotated[float, _parameter(help="The relative duality gap to stop at.")] = 1e-4,
    time_limit: Annotated[float | None, _parameter(help="Seconds for the fit.")] = None,
    folds: Annotated[int, _parameter(help="Folds of --tune.")] = 5,
    grid: Annotated[int, _parameter(help="Values of C and of γ that --tune tries.")] = 10,
    jobs: Annotated[int | None, _parameter(help="Jobs of --tune.")] = None,
    seed: Annotated[int, _parameter(help="Of the folds and the rows set aside.")] = 0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read, say what would be fitted, and stop.")
    ] = False,
    as_json: Json = False,
    force: Force = False,
) -> int:
    """Fit a model to a file and save it.

    Numbers, text and dates are made features of inside the saved model, so that 'predict' takes
    files as they are; 'info' tells what each column was taken for. The last table shows for every
    level the loss it minimises, the share of targets at or below it, its support vectors, and the
    duality gap: a gap of 1e-4 means that no function has an objective more than 0.01 % below.
    """
    from ..persistence import save
    from .fitting import FitOptions, fit_planned, plan_fit
    from .predicting import output_format, write_table
    from .show import print_scores

    if save_to is not None:
        check_output("--save", save_to, [data], force=force)
    elif not dry_run:
        raise InputError("--save: name the file to save the model to, or give --dry-run")
    if holdout_out is not None:
        if not holdout:
            raise InputError("--holdout-out: needs --holdout, the share of rows to set aside")
        output_format(holdout_out)
        check_output("--holdout-out", holdout_out, [data], force=force, holds_data=True)
    for option, value in (("--C", C), ("--tol", tol), ("--time-limit", time_limit)):
        above_zero(option, value)
    if epsilon:
        above_zero("--epsilon", epsilon)
    chosen = kind_named(kind)
    if loss == "svr" and tau is not None:
        raise InputError("--tau: --loss svr has no levels")
    given = {
        "--epsilon": epsilon is not None,
        "--time-limit": time_limit is not None,
        "--kernel": kernel != "auto",
        "--gamma": gamma != "scale",
    }
    check_unused(kind, chosen.unused, given)
    settings = Settings(
        tau=read_levels(tau, chosen.default_tau, chosen.several, kind),
        C=C,
        gamma=read_gamma(gamma),
        epsilon=epsilon,
        kernel=read_kernel(kernel),
        feature_metric=read_metric(feature_metric, kind, tune and chosen.learns),
        tol=tol,
        time_limit=time_limit,
        loss=read_loss(loss, chosen.losses, kind),
        folds=at_least("--folds", folds, 2),
        grid=at_least("--grid", grid, 1),
        jobs=jobs,
        seed=at_least("--seed", seed, 0),
    )
    options = FitOptions(
        target=target,
        features=read_names(features),
        drop=read_names(drop),
        categorical=read_names(categorical),
        max_categories=max_categories,
        weight=weight,
        impute=impute,
        holdout=share("--holdout", holdout),
        positive=positive,
        tune=tune,
        numeric=read_names(numeric),
        drop_missing_target=drop_missing_target,
        reading=read_reading(sep, decimal, encoding, na, dates),
    )
    messages = error_console()
    planned: dict[str, Any] = {}
    if dask is not None:
        from .partitioned import fit_partitions

        if dry_run or holdout_out is not None or save_to is None:
            raise InputError("--dask: goes with --save, and not with --dry-run or --holdout-out")
        fitted = fit_partitions(data, dask, chosen, settings, options, messages)
    else:
        plan = plan_fit(data, chosen, settings, options)
        if not as_json:
            for line in plan.lines:
                say(messages, line)
        if dry_run or save_to is None:
            if as_json:
                told = [column.as_json() for column in plan.columns]
                sys.stdout.write(json.dumps({**plan.facts, "columns": told}) + "\n")
            warn(messages, plan.told)
            return errors.SUCCESS
        planned = plan.facts
        fitted = fit_planned(plan, messages)
        if holdout_out is not None:
            if plan.held_out is None:
                raise InputError(f"--holdout-out: {data} is svmlight, which has no named columns")
            write_table(plan.held_out, holdout_out)
    try:
        save(fitted.model, save_to, card=fitted.card)
    except OSError as error:
        raise InputError(f"{save_to}: cannot be written: {error.strerror}") from error
    warn(messages, fitted.warnings)
    if as_json:
        told_card = {k: v for k, v in fitted.card.items() if k != "fingerprints"}
        facts = {"model": str(save_to), **planned, **told_card}
        sys.stdout.write(json.dumps(facts) + "\n")
    else:
        console = Console(highlight=False)
        print_scores(console, fitted.card)
        console.print(f"saved to {save_to}", soft_wrap=True, markup=False)
        if holdout_out is not None:
            console.print(f"rows held out: {holdout_out}", soft_wrap=True, markup=False)
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
    sep: Sep = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    na: Na = "",
    dates: Dates = None,
    as_json: Json = False,
    force: Force = False,
) -> int:
    """Predict at the rows of a file.

    Writes one column a level, named after what it is: quantile_0.05, expectile_0.9, prediction; for
    a classifier the label and its decision value. The rows are those of DATA, in their order.
    """
    from .predicting import load_model, model_input, output_format, prediction_table, write_table

    if output is not None:
        output_format(output)
        check_output("-o", output, [data, model], force=force, holds_data=True)
    loaded, info = load_model(model)
    if output is not None and output.name == info.card.get("data"):
        raise InputError(
            f"-o: {output} has the name of the data that the model was fitted to; name another one"
        )
    table, X, told = model_input(data, info.card, read_reading(sep, decimal, encoding, na, dates))
    taus = () if tau is None else read_levels(tau, (), True, info.card["kind"])
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
    if table.notes:
        say(messages, table.read_as)
    warn(messages, told)
    if as_json:
        told_rows = {"columns": list(predictions.columns), "rows": len(predictions)}
        if output is None:
            told_rows["predictions"] = json.loads(predictions.to_json(orient="records"))
        sys.stdout.write(json.dumps({**told_rows, "output": output and str(output)}) + "\n")
    if output is not None or not as_json:
        write_table(predictions, output)
    if output is not None:
        say(messages, f"{len(predictions)} rows written to {output}")
    return errors.SUCCESS


@app.command(epilog="Example:\n\n  tausvm report rent.skops rest.csv -o report.html")
def report(
    model: ModelFile,
    data: DataFile,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="OUT", help="The HTML file to write.")
    ] = Path("report.html"),
    title: Annotated[str | None, typer.Option(help="The heading of the page.")] = None,
    cost_miss: Annotated[
        float | None,
        typer.Option(
            metavar="COST", help="For a classifier: what a missed positive costs, above 0."
        ),
    ] = None,
    cost_alarm: Annotated[
        float | None,
        typer.Option(metavar="COST", help="For a classifier: what a false alarm costs, above 0."),
    ] = None,
    sep: Sep = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    na: Na = "",
    dates: Dates = None,
    as_json: Json = False,
    force: Force = False,
) -> int:
    """Write a page about a model on the rows of a file.

    One HTML file that opens in any browser, also on a phone, without a network: the levels with a
    slider over τ, calibration, residuals, the certificate in a sentence, parameters and data; for a
    classifier decisions, rates and costs. It says how many of the rows were fitted: give it rows
    that the model has not seen, if you have them.
    """
    from ..report import write_report
    from ..report.content import fitted_told
    from .fingerprints import fitted_among
    from .predicting import load_model
    from .reporting import report_rows

    costs = read_costs(cost_miss, cost_alarm)
    check_output("-o", output, [data, model], force=force)
    loaded, info = load_model(model)
    if costs is not None and not info.card.get("classes"):
        raise InputError("--cost-miss: is for classifiers, and this model is none")
    rows = report_rows(data, info.card, read_reading(sep, decimal, encoding, na, dates))
    fitted = fitted_among(info.card.get("fingerprints"), rows.X, rows.y)
    words = fitted_told(loaded, rows.X, fitted)["words"]
    messages = error_console()
    if rows.table.notes:
        say(messages, rows.table.read_as)
    warn(messages, rows.told)
    try:
        write_report(
            loaded,
            rows.X,
            rows.y,
            output,
            title=title,
            target_name=info.card.get("target"),
            classes=info.card.get("classes"),
            data_name=rows.table.file.name,
            versions=info.versions,
            fitted_rows=fitted,
            costs=costs,
        )
    except OSError as error:
        raise InputError(f"{output}: cannot be written: {error.strerror}") from error
    if as_json:
        facts = {"report": str(output.resolve()), "rows": len(rows.y), "fitted": fitted}
        sys.stdout.write(json.dumps(facts) + "\n")
    else:
        console = Console(highlight=False)
        console.print(f"Report: {output.resolve()}", soft_wrap=True, markup=False)
        console.print(f"{rows.table.file}: {words}", soft_wrap=True, markup=False)
    return errors.SUCCESS


@app.command(epilog="Example:\n\n  tausvm plot rent.skops new.csv --feature area -o fan.png")
def plot(
    model: ModelFile,
    data: DataFile,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="OUT", help="A .png, .svg or .pdf file.")
    ] = Path("plot.png"),
    feature: Annotated[
        str | None,
        typer.Option(metavar="COL", help="The number to draw levels along; the first by default."),
    ] = None,
    sep: Sep = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    na: Na = "",
    dates: Dates = None,
    as_json: Json = False,
    force: Force = False,
) -> int:
    """Draw a model on the rows of a file.

    Levels and typical values are drawn along a feature, the others at their medians; a path by its
    errors at every level. Needs matplotlib.
    """
    from .drawing import PICTURES, check_ending, draw, write_whole
    from .predicting import load_model
    from .reporting import report_rows

    check_ending(output, PICTURES, "a picture")
    check_output("-o", output, [data, model], force=force)
    loaded, info = load_model(model)
    rows = report_rows(data, info.card, read_reading(sep, decimal, encoding, na, dates))
    target = info.card.get("target")
    try:
        figure = draw(loaded, rows.X, rows.y, feature=feature, target=target)
    except ImportError as error:
        raise InputError("plot: needs matplotlib: pip install matplotlib") from error
    messages = error_console()
    if rows.table.notes:
        say(messages, rows.table.read_as)
    warn(messages, rows.told)
    write_whole(output, lambda part: figure.savefig(part, bbox_inches="tight"))
    if as_json:
        sys.stdout.write(json.dumps({"plot": str(output), "rows": len(rows.y)}) + "\n")
    else:
        say(messages, f"drawn to {output}")
    return errors.SUCCESS


@app.command(epilog="Example:\n\n  tausvm export rent.skops -o rent.onnx")
def export(
    model: ModelFile,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="OUT", help="The .onnx file to write.")
    ],
    tau: Annotated[
        str | None, typer.Option(metavar="T,T,…", help="Levels, for a model of --kind path.")
    ] = None,
    as_json: Json = False,
    force: Force = False,
) -> int:
    """Write a model as an ONNX graph, which runs without Python. Needs onnx.

    The graph has an input a column. The classes of a classifier are 0 and 1, the positive one.
    """
    from .drawing import check_ending
    from .drawing import export as write_graph
    from .predicting import load_model

    check_ending(output, (".onnx",), "a graph")
    check_output("-o", output, [model], force=force)
    loaded, info = load_model(model)
    taus = () if tau is None else read_levels(tau, (), True, info.card["kind"])
    inputs = write_graph(loaded, taus, output)
    if as_json:
        facts = {"graph": str(output), "inputs": inputs, "classes": info.card.get("classes")}
        sys.stdout.write(json.dumps(facts) + "\n")
    else:
        say(error_console(), f"written to {output}; its inputs are {', '.join(inputs)}")
    return errors.SUCCESS


@app.command()
def info(
    model: ModelFile,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> int:
    """Tell what a model is: what it was fitted to, how good it was, and what wrote it."""
    from .predicting import load_model
    from .show import model_facts, print_model

    loaded, about = load_model(model)
    machine = loaded[-1]
    if as_json:
        sys.stdout.write(json.dumps(model_facts(machine, about)) + "\n")
    else:
        print_model(Console(highlight=False), machine, about)
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
        code = app(args=with_address(arguments), prog_name="tausvm", standalone_mode=False)
        if code == errors.INTERRUPTED:
            say(messages, "interrupted")
        return int(code or 0)
    except InputError as error:
        say(messages, f"error: {error}")
        return errors.BAD_INPUT
    except (KeyboardInterrupt, typer.Abort):
        say(messages, "interrupted")
        return errors.INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return errors.SUCCESS
    except Exception as error:
        if hasattr(error, "format_message"):  # an option that typer could not take
            say(messages, f"error: {_one_line(error.format_message())}")
            return errors.BAD_INPUT
        say(messages, f"error: {type(error).__name__}: {_one_line(str(error))}")
        return errors.UNEXPECTED


def _one_line(text: str) -> str:
    return " ".join(text.split())
