"""Where scikit-learn, NumPy and pandas describe their names, without asking the network.

Their sites follow a rule, and their packages list their public names: together that is an
inventory as intersphinx reads them. A name that a package has and its site does not is the
price, and no page here refers to one.
"""

from __future__ import annotations

import inspect
import warnings
import zlib
from importlib.metadata import version
from pathlib import Path

SITES = {
    "sklearn": ("scikit-learn", "https://scikit-learn.org/stable/"),
    "numpy": ("numpy", "https://numpy.org/doc/stable/"),
    "pandas": ("pandas", "https://pandas.pydata.org/docs/"),
}


def sklearn_names() -> dict[str, tuple[str, str]]:
    from sklearn.utils.discovery import all_displays, all_estimators, all_functions

    page = "modules/generated/{0}.html#{0}"
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lists = (("class", [*all_estimators(), *all_displays()]), ("function", all_functions()))
        for role, listed in lists:
            for name, thing in listed:
                public = ".".join(
                    part for part in thing.__module__.split(".") if not part.startswith("_")
                )
                full = f"{public}.{name}"
                if full.count(".") > 2:  # tests and modules that are not public by themselves
                    continue
                found[full] = (role, page.format(full))
    for name in ("ConvergenceWarning", "NotFittedError"):
        full = f"sklearn.exceptions.{name}"
        found[full] = ("exception", page.format(full))
    return found


def numpy_names() -> dict[str, tuple[str, str]]:
    import numpy as np

    found = {
        "numpy.random.Generator": (
            "class",
            "reference/random/generator.html#numpy.random.Generator",
        ),
        "numpy.random.default_rng": (
            "function",
            "reference/random/generator.html#numpy.random.default_rng",
        ),
    }
    for name in np.__all__:
        thing = getattr(np, name, None)
        if callable(thing) and not name.startswith("_"):
            role = "class" if inspect.isclass(thing) else "function"
            found[f"numpy.{name}"] = (role, f"reference/generated/numpy.{name}.html#numpy.{name}")
    return found


def pandas_names() -> dict[str, tuple[str, str]]:
    import pandas as pd

    found = {}
    for name in pd.__all__:
        thing = getattr(pd, name, None)
        if callable(thing):
            role = "class" if inspect.isclass(thing) else "function"
            found[f"pandas.{name}"] = (role, f"reference/api/pandas.{name}.html#pandas.{name}")
    return found


def inventories(folder: Path) -> dict[str, tuple[str, str]]:
    """Write the inventories and return them as intersphinx's mapping."""
    folder.mkdir(parents=True, exist_ok=True)
    mapping = {}
    for name, read in (
        ("sklearn", sklearn_names),
        ("numpy", numpy_names),
        ("pandas", pandas_names),
    ):
        package, site = SITES[name]
        lines = [f"{full} py:{role} 1 {uri} -" for full, (role, uri) in sorted(read().items())]
        head = (
            "# Sphinx inventory version 2\n"
            f"# Project: {package}\n# Version: {version(package)}\n"
            "# The remainder of this file is compressed using zlib.\n"
        )
        file = folder / f"{name}.inv"
        file.write_bytes(head.encode() + zlib.compress("\n".join([*lines, ""]).encode()))
        mapping[name] = (site, str(file))
    return mapping
