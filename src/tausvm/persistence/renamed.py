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

#: by module and name in the file
RENAMED: Names = {
    ("tausvm.solvers.joint.problem", "JointResult"): NewName(
        "tausvm.solvers.result", "SolverResult", {"alpha": "beta"}
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
