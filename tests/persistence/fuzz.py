"""Load mutated model files and watch what happens: ``python -m tests.persistence.fuzz FILE N``.

Runs in a process of its own, so that a crash shows as one. Half of the mutations change bytes;
half change the schema and recompute the checksums, as somebody would who knows the format.
Prints one line of JSON: how many files were refused, loaded, and what else was seen.
"""

from __future__ import annotations

import copy
import io
import json
import os
import random
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tausvm.persistence import ModelFileError, load
from tausvm.persistence.archive import MANIFEST, SCHEMA, pack

TYPES = [
    ("builtins", "eval"),
    ("builtins", "exec"),
    ("builtins", "print"),
    ("builtins", "__import__"),
    ("os", "system"),
    ("posix", "system"),
    ("subprocess", "Popen"),
    ("subprocess", "check_output"),
    ("pathlib", "Path"),
    ("io", "open"),
    ("pickle", "loads"),
    ("operator", "methodcaller"),
    ("antigravity", "fly"),
    ("sklearn.preprocessing._function_transformer", "FunctionTransformer"),
    ("sklearn.pipeline", "Pipeline"),
    ("tausvm.solvers.result", "Status"),
    ("numpy", "ndarray"),
    ("numpy", "load"),
    ("builtins", "dict"),
]
LOADERS = [
    "ObjectNode",
    "FunctionNode",
    "MethodNode",
    "PartialNode",
    "TypeNode",
    "ReduceNode",
    "TreeNode",
    "OperatorFuncNode",
    "ConstructorFromReduceNode",
    "CachedNode",
    "BytesNode",
    "JsonNode",
    "DictNode",
    "NdArrayNode",
    "SparseMatrixNode",
    "RandomStateNode",
    "MissingNode",
]
VALUES: list[Any] = [None, -1, 0, 10**30, float("nan"), "", "x" * 2000, [], {}, True, "../../etc"]
#: what reading a model may never do
FORBIDDEN = ("os.system", "os.exec", "subprocess.Popen", "socket.connect", "os.remove", "os.spawn")

seen: list[str] = []
watching = False


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    """Note what a reader has no business doing."""
    if not watching:
        return
    if event.startswith(FORBIDDEN) or (event == "open" and str(arguments[1]).strip("rb") != ""):
        seen.append(f"{event} {arguments!r}"[:200])
    foreign = {"antigravity", "pickle", "subprocess"} - set(sys.modules)
    if event == "import" and arguments[0] in foreign:
        seen.append(f"import {arguments[0]}")


def mutate_bytes(data: bytes, rng: random.Random) -> bytes:
    """A few bytes flipped, cut, repeated, zeroed, or a whole tail lost."""
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8])):
        place = rng.randrange(len(changed))
        length = rng.choice([1, 1, 4, 64, 1024])
        match rng.randrange(6):
            case 0:
                changed[place] ^= 1 << rng.randrange(8)
            case 1:
                changed[place : place + length] = bytes(length)
            case 2:
                del changed[place : place + length]
            case 3:
                changed[place:place] = changed[place : place + length]
            case 4:
                changed[place : place + length] = rng.randbytes(length)
            case 5:
                del changed[place:]
        if not changed:
            break
    return bytes(changed)


def nodes(item: Any) -> list[dict[str, Any]]:
    """All nodes of a schema."""
    found = []
    stack = [item]
    while stack:
        part = stack.pop()
        if isinstance(part, dict):
            if "__loader__" in part:
                found.append(part)
            stack.extend(part.values())
        elif isinstance(part, list):
            stack.extend(part)
    return found


def copied(node: dict[str, Any]) -> dict[str, Any]:
    """A copy of a node, or an empty one of a node that is nested too deep to copy."""
    try:
        return copy.deepcopy(node)
    except RecursionError:
        return {}


def mutate_schema(members: dict[str, bytes], rng: random.Random) -> bytes:
    """Another type, loader, content or array at a random node, with fitting checksums."""
    members = dict(members)
    schema = json.loads(members[SCHEMA])
    for _ in range(rng.choice([1, 1, 1, 3])):
        everything = nodes(schema)
        node = rng.choice(everything)
        match rng.randrange(9):
            case 0:
                node["__module__"], node["__class__"] = rng.choice(TYPES)
            case 1:
                node["__loader__"] = rng.choice(LOADERS)
            case 2:
                node["__loader__"] = rng.choice(LOADERS)
                node["__module__"], node["__class__"] = rng.choice(TYPES)
            case 3:
                node["content"] = rng.choice(VALUES)
            case 4:
                node["content"] = copied(rng.choice(everything)).get("content")
            case 5:
                node.pop(rng.choice(list(node)), None)
            case 6:
                deep: Any = 0
                for _ in range(rng.choice([10, 500, 3000])):
                    deep = [deep]
                node["content"] = deep
            case 7:
                arrays = [name for name in members if name.endswith(".npy")]
                if arrays:
                    members[rng.choice(arrays)] = array_bytes(rng)
            case 8:
                other = rng.choice(everything)
                node.clear()
                node.update(copied(other))
    try:
        members[SCHEMA] = json.dumps(schema).encode()
    except (RecursionError, ValueError):
        members[SCHEMA] = b"[" * 100_000
    return pack(members, {})


def array_bytes(rng: random.Random) -> bytes:
    """An array of another shape, type or claim."""
    stream = io.BytesIO()
    match rng.randrange(6):
        case 0:
            np.save(stream, np.zeros(rng.choice([0, 1, 3, 1000])))
        case 1:
            np.save(stream, np.zeros((rng.randrange(5), rng.randrange(5))))
        case 2:
            np.save(stream, np.array(["a", "b"]))
        case 3:
            np.save(stream, np.array([{"a": 1}], dtype=object), allow_pickle=True)
        case 4:
            header = {"descr": "<f8", "fortran_order": False, "shape": (10**11, 10**3)}
            np.lib.format.write_array_header_1_0(stream, header)
        case 5:
            stream.write(rng.randbytes(50))
    return stream.getvalue()


def main(file: str, count: int) -> int:
    data = Path(file).read_bytes()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {n: archive.read(n) for n in archive.namelist() if n != MANIFEST}
    rng = random.Random(0)
    warnings.simplefilter("ignore")
    load(file)  # imports what it needs
    mutations: list[Callable[[], bytes]] = [
        lambda: mutate_bytes(data, rng),
        lambda: mutate_schema(members, rng),
    ]
    tally = {"refused": 0, "loaded": 0, "used": 0, "raised": []}
    sys.addaudithook(watch)
    global watching
    with tempfile.TemporaryDirectory() as folder:
        mutant = Path(folder) / "mutant.skops"
        for k in range(count):
            mutant.write_bytes(mutations[k % 2]())
            watching = True
            try:
                model = load(mutant, max_bytes=2**26)
            except ModelFileError as error:
                assert "\n" not in str(error), error
                tally["refused"] += 1
            except Exception as error:
                tally["raised"].append(f"{k}: {error!r}"[:300])
            else:
                tally["loaded"] += 1
                try:
                    model.predict(np.zeros((2, 2)))
                    tally["used"] += 1
                except Exception:
                    pass  # a model that says why it cannot predict has not crashed
            watching = False
    sys.stdout.write(json.dumps({**tally, "seen": seen, "pid": os.getpid()}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
