"""Values of options: what their text says, or an error that names the option."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from .errors import InputError
from .formats import ORDERS, ReadOptions


def read_names(text: str) -> list[str]:
    """Names between commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def read_levels(
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


def read_gamma(text: str) -> str | float:
    """A number above 0, or the name of a rule."""
    if text in {"scale", "auto"}:
        return text
    try:
        gamma = float(text)
    except ValueError as error:
        raise InputError(f"--gamma: must be a number, scale or auto, got {text!r}") from error
    if not (gamma > 0 and math.isfinite(gamma)):
        raise InputError(f"--gamma: must be a finite number above 0, got {text}")
    return gamma


def read_kernel(name: str) -> str:
    """One of the kernels that are computed from features, or "auto"."""
    from ..kernels import KERNELS  # here, so that help is there at once

    choices = ["auto", *(kernel for kernel in KERNELS if kernel != "precomputed")]
    if name not in choices:
        raise InputError(f"--kernel: must be one of {', '.join(choices)}, got {name!r}")
    return name


def read_metric(name: str, kind: str, learns: bool) -> str | None:
    """How a selection learns features; None for features as they are."""
    from ..selection.views import METRICS

    choices = (*METRICS, "none")
    if name not in choices:
        raise InputError(f"--feature-metric: must be one of {', '.join(choices)}, got {name!r}")
    if name in ("diagonal", "full") and not learns:
        raise InputError(
            f"--feature-metric: needs --tune and a kind that learns features, got --kind {kind}"
        )
    return None if name == "none" else name


def read_loss(name: str | None, choices: tuple[str, ...], kind: str) -> str:
    """One of the losses of a kind, the first of them by default."""
    if name is None:
        return choices[0] if choices else ""
    if not choices:
        raise InputError(f"--loss: --kind {kind} has no choice of losses")
    if name not in choices:
        raise InputError(f"--loss: must be one of {', '.join(choices)}, got {name!r}")
    return name


def at_least(option: str, value: int, least: int) -> int:
    """A value that is not too small."""
    if value < least:
        raise InputError(f"{option}: must be at least {least}, got {value}")
    return value


def read_costs(miss: float | None, alarm: float | None) -> tuple[float, float] | None:
    """The costs of the two errors of a classifier: both or none, and above 0."""
    above_zero("--cost-miss", miss)
    above_zero("--cost-alarm", alarm)
    if miss is None and alarm is None:
        return None
    if miss is None or alarm is None:
        raise InputError("--cost-miss: goes with --cost-alarm; give both")
    return miss, alarm


def share(option: str, value: float) -> float:
    """A share of the rows, possibly none but not all."""
    if not 0 <= value < 1:
        raise InputError(f"{option}: must be at least 0 and below 1, got {value:g}")
    return value


def check_unused(kind: str, unused: tuple[str, ...], given: dict[str, bool]) -> None:
    """An error for the first option that is given and means nothing to the kind."""
    for option in unused:
        if given[option]:
            raise InputError(f"{option}: means nothing to --kind {kind}; leave it out")


def with_address(arguments: Sequence[str]) -> list[str]:
    """The arguments with the address that a bare ``--dask`` stands for: no cluster.

    What follows is the address only if it looks like one: ``tcp://…``, or a host and a port.
    """
    out: list[str] = []
    for k, argument in enumerate(arguments):
        out.append(argument)
        if argument == "--dask":
            after = arguments[k + 1] if k + 1 < len(arguments) else ""
            if not re.fullmatch(r"\w+://\S+|[\w.-]+:\d+", after):
                out.append("local")
    return out


def read_reading(
    sep: str | None, decimal: str | None, encoding: str | None, na: str, dates: str | None
) -> ReadOptions:
    """What is insisted on about a file."""
    named = {"tab": "\t", "\\t": "\t", "space": r"\s+", "comma": ",", "semicolon": ";"}
    sep = None if sep is None else named.get(sep, sep)
    if sep is not None and len(sep) != 1 and sep != r"\s+":
        raise InputError(f"--sep: must be one character, tab or space, got {sep!r}")
    sep = r"\s+" if sep == " " else sep
    if decimal is not None and decimal not in (",", "."):
        raise InputError(f"--decimal: must be a point or a comma, got {decimal!r}")
    if sep is not None and sep == decimal:
        raise InputError(f"--decimal: {decimal!r} separates the cells already (--sep)")
    if dates is not None and dates not in ORDERS:
        raise InputError(f"--dates: must be one of {', '.join(ORDERS)}, got {dates!r}")
    return ReadOptions(sep, decimal, encoding, tuple(read_names(na)), dates)


def above_zero(option: str, value: float | None) -> None:
    """Refuse what is not a finite number above 0."""
    if value is not None and not (value > 0 and math.isfinite(value)):
        raise InputError(f"{option}: must be a finite number above 0, got {value:g}")
