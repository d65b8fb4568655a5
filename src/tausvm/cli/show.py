"""A model in tables for people, and in plain values for scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from ..persistence import ModelInfo

#: columns of the last table: heading, key, format
FIGURES = (
    ("level", "tau", "{:g}"),
    ("loss", "loss", "{:.4g}"),
    ("coverage", "coverage", "{:.1%}"),
    ("accuracy", "accuracy", "{:.1%}"),
    ("missed", "missed", "{:d}"),
    ("false alarms", "false_alarms", "{:d}"),
    ("kernel", "kernel", "{}"),
    ("C", "C", "{:.3g}"),
    ("gamma", "gamma", "{:.3g}"),
    ("support vectors", "support", "{:d}"),
    ("turning points", "kinks", "{:d}"),
    ("gap", "gap", "{:.1e}"),
    ("gap of landmarks", "landmark_gap", "{:.1e}"),
    ("seconds", "seconds", "{:.2f}"),
)


def score_table(card: dict[str, Any]) -> Table:
    """A row a level, with the columns that the model has."""
    rows = card["scores"]["levels"]
    shown = [figure for figure in FIGURES if any(row.get(figure[1]) is not None for row in rows)]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading, _, _ in shown:
        table.add_column(heading, justify="right")
    for row in rows:
        cells = [(row.get(key), form) for _, key, form in shown]
        table.add_row(*("" if value is None else form.format(value) for value, form in cells))
    return table


def print_scores(console: Console, card: dict[str, Any]) -> None:
    """The table, what it was measured on, and crossings."""
    held_out = card["held_out"]
    where = f"{held_out} rows held out" if held_out else "the rows it was fitted to"
    rows, features = card["rows"], card["features"]
    name = card["target"] or "the target"
    console.print(f"{card['kind']} model of {name}: {rows} rows, {features} features", style="bold")
    if card.get("classes"):
        negative, positive = card["classes"]
        console.print(f"positive class: {positive}, negative: {negative}", markup=False)
    console.print(f"loss and coverage on {where}", style="dim")
    console.print(score_table(card))
    crossings = card["scores"]["crossings"]
    if crossings is not None:
        console.print(f"crossing levels: {crossings:.1%} of rows")
    console.print(f"fitted in {card['seconds']:.2f} s")


def parameter_table(parameters: dict[str, Any]) -> Table:
    """Names and values."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column()
    for name, value in parameters.items():
        table.add_row(name, str(value))
    return table


def column_table(columns: list[dict[str, Any]]) -> Table:
    """The columns that a model reads."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("column", "type", "values"):
        table.add_column(heading)
    for c in columns:
        if c["type"] == "number":
            values = f"{c['low']:g} to {c['high']:g}, median {c['median']:g}"
        elif c["values"]:
            values = ", ".join(c["values"][:8]) + (" …" if len(c["values"]) > 8 else "")
        else:
            values = c["why"]
        table.add_row(c["name"], c["type"], values)
    return table


def print_model(console: Console, machine: Any, about: ModelInfo) -> None:
    """All that is known of a model: scores, columns, parameters, and what wrote it."""
    print_scores(console, about.card)
    if about.card["columns"]:
        console.print(column_table(about.card["columns"]))
    console.print(f"{type(machine).__name__}", style="bold")
    console.print(parameter_table(_parameters(machine)))
    versions = ", ".join(f"{name} {number}" for name, number in about.versions.items())
    console.print(f"\nwritten {about.created} by {versions}", style="dim", markup=False)


def model_facts(machine: Any, about: ModelInfo) -> dict[str, Any]:
    """The same as values that JSON has."""
    return {
        "created": about.created,
        "versions": about.versions,
        "estimator": type(machine).__name__,
        "parameters": {name: _jsonable(value) for name, value in _parameters(machine).items()},
        **{key: value for key, value in about.card.items() if key != "fingerprints"},
    }


def _parameters(machine: Any) -> dict[str, Any]:
    return {name: value for name, value in machine.get_params().items() if name != "verbose"}


def _jsonable(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str | list | None) else str(value)
