"""Classes that have another name, and fields that do, in files that earlier versions wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from .archive import SCHEMA


class NewName(NamedTuple):
    """Where a class is now, and its fields whose names have changed."""

    module: str
    name: str
    fields: dict[str, str]


Names = dict[tuple[str, str], NewName]


def _moved(before: str, after: str, *names: str) -> Names:
    """Classes that another module has now, under the same names."""
    old, new = (f"tausvm.{module}" for module in (before, after))
    return {(old, name): NewName(new, name, {}) for name in names}


#: by module and name in the file
RENAMED: Names = {
    ("tausvm.solvers.joint.problem", "JointResult"): NewName(
        "tausvm.solvers.result", "SolverResult", {"alpha": "beta"}
    ),
    ("tausvm.solvers.linear.monitor", "LinearResult"): NewName(
        "tausvm.solvers.result", "SolverResult", {"coef": "function"}
    ),
    **_moved("solvers.path_problem", "solvers.path.family", "PathProblem"),
    **_moved("solvers.path_problem", "solvers.path.result", "PathResult"),
    **_moved("solvers.tau_path", "solvers.path.tau_path", "Chain", "TauPath"),
    **_moved("solvers.moving_box", "solvers.path.box", "MovingBox"),
    **_moved(
        "kernels.products",
        "operators.products",
        *("KernelProducts", "LinearProducts", "MatrixProducts"),
    ),
}


def renewed(
    schema: Any, members: dict[str, bytes], names: Names = RENAMED
) -> dict[str, bytes] | None:
    """The members with the schema in today's names; None where it has them already.

    The schema itself is changed in place.
    """
    changed = False
    for node in _objects(schema):
        new = names.get((node["__module__"], node["__class__"]))
        if new is None:
            continue
        changed = True
        node["__module__"], node["__class__"] = new.module, new.name
        state = node.get("content")
        if isinstance(state, dict) and isinstance(state.get("content"), dict):
            given = state["content"].items()
            state["content"] = {new.fields.get(key, key): value for key, value in given}
    return {**members, SCHEMA: json.dumps(schema).encode()} if changed else None


def _objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Every node that names a class, without recursion."""
    stack = [schema]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            if isinstance(item.get("__module__"), str) and isinstance(item.get("__class__"), str):
                yield item
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
