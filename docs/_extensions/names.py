"""Names in the text that lead to the reference.

A page writes `QuantileSVR` or `GridSearchCV` as code, as it would in any editor; here such words
become links where one public name is meant: of tausvm first, else of scikit-learn, NumPy or pandas.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

#: modules whose names are public, besides those that the package itself exports
MODULES = ("metrics", "plotting", "losses", "report", "persistence", "export", "exceptions")
#: short words that pages write as code in another sense
NOT_NAMES = {"predict", "load", "save", "Pipeline.fit"}


@cache
def known_names() -> dict[str, str]:
    """What a page may write, and the full name that it means."""
    import tausvm

    found = {}
    for name in tausvm.__all__:
        if not name.startswith("_"):
            found[name] = found[f"tausvm.{name}"] = f"tausvm.{name}"
    for short in MODULES:
        module = import_module(f"tausvm.{short}")
        for name in getattr(module, "__all__", ()):
            full = f"tausvm.{short}.{name}"
            found.setdefault(full, full)
            if name not in NOT_NAMES:
                found.setdefault(name, full)
    for info in pkgutil.iter_modules(tausvm.__path__):
        if not info.name.startswith("_"):
            found.setdefault(f"tausvm.{info.name}", f"tausvm.{info.name}")
    return found


@cache
def names_of_others() -> dict[str, str]:
    """scikit-learn's public classes by their last name."""
    from inventories import sklearn_names

    return {
        full.rpartition(".")[2]: full
        for full, (role, _) in sklearn_names().items()
        if role == "class"
    }


def _within(node: nodes.Node | None) -> bool:
    """Whether a node is part of a link or of a heading already."""
    while node is not None:
        if isinstance(node, (nodes.reference, addnodes.pending_xref, nodes.title)):
            return True
        node = node.parent
    return False


def _is_theirs(literal: nodes.literal) -> bool:
    """Whether the words before a name say that it is scikit-learn's: "scikit-learn's `SVR`"."""
    place = literal.parent.index(literal)
    before = literal.parent[place - 1].astext().rstrip() if place else ""
    return before.endswith(("scikit", "scikit-learn", "scikit-learn's", "scikit-learn’s"))


class LinkNames(SphinxTransform):
    """Turn literals that name something public into references, the first of a section."""

    default_priority = 400

    def apply(self, **kwargs: Any) -> None:
        for literal in list(self.document.findall(nodes.literal)):
            if _within(literal):
                continue
            written = literal.astext()
            word = written.split("(")[0] if written.count("(") == 1 else written
            theirs = names_of_others().get(word)
            full = theirs if theirs and _is_theirs(literal) else known_names().get(word) or theirs
            if full is None and word.startswith(("sklearn.", "numpy.", "pandas.", "np.", "pd.")):
                full = word.replace("np.", "numpy.", 1) if word.startswith("np.") else word
            if full is None:
                continue
            reference = addnodes.pending_xref(
                "",
                refdomain="py",
                reftype="obj",
                reftarget=full,
                refexplicit=True,
                refwarn=False,
            )
            reference["py:module"] = reference["py:class"] = None
            literal.replace_self(reference)
            reference += literal


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_transform(LinkNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
