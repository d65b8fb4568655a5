"""The file around a model: a ZIP archive with a manifest, read within bounds.

A model file is what skops writes, a ``schema.json`` and arrays, plus ``tausvm.json``: the format,
the versions, what the writer wants to tell, and size and SHA-256 of every other member. What is
read is bounded before it is read, and nothing is taken from a member that does not match.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import math
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

MANIFEST = "tausvm.json"
SCHEMA = "schema.json"
FORMAT = "tausvm model"
FORMAT_VERSION = 1
#: bound on a file and on what it unpacks to, unless the caller gives another
MAX_BYTES = 2**30
#: bound on the JSON members, which take many times their size in memory
MAX_JSON_BYTES = 2**26
MAX_MEMBERS = 20_000


class ModelFileError(ValueError):
    """A file that is not a model, is damaged or holds something that is not allowed."""


def pack(members: Mapping[str, bytes], told: dict[str, Any]) -> bytes:
    """The bytes of a model file."""
    manifest = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        **told,
        "members": {
            name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in members.items()
        },
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as archive:
        archive.writestr(MANIFEST, json.dumps(manifest, indent=1))
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def unpack(data: bytes, max_bytes: int) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The manifest and the members, each as the manifest says it is."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = archive.infolist()
            names = [info.filename for info in infos]
            _check_bounds(infos, max_bytes)
            if MANIFEST not in names:
                raise ModelFileError(f"not a tausvm model: it has no {MANIFEST}")
            manifest = _manifest(_json(archive.read(MANIFEST), MANIFEST))
            if sorted(names) != sorted([MANIFEST, *manifest["members"]]):
                raise ModelFileError("its members are not those that its manifest lists")
            members = {
                name: _member(archive, name, listed) for name, listed in manifest["members"].items()
            }
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, EOFError) as error:
        raise ModelFileError(f"not a tausvm model, or damaged: {error}") from error
    except OSError as error:
        raise ModelFileError(f"damaged: {error}") from error
    return manifest, members


def read_manifest(data: bytes, max_bytes: int) -> dict[str, Any]:
    """The manifest alone, after all checks of the archive."""
    return unpack(data, max_bytes)[0]


def schema(members: Mapping[str, bytes]) -> dict[str, Any]:
    """The schema as JSON, not yet checked."""
    if SCHEMA not in members:
        raise ModelFileError(f"it has no {SCHEMA}")
    return _json(members[SCHEMA], SCHEMA)


def check_array_member(name: str, data: bytes) -> None:
    """An .npy member holds what its header says: no pickle, no claim beyond its size."""
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        if version not in {(1, 0), (2, 0), (3, 0)}:
            raise ModelFileError(f"{name}: unknown version {version} of the array format")
        length = int.from_bytes(stream.read(2 if version == (1, 0) else 4), "little")
        if length > 100_000:
            raise ModelFileError(f"{name}: the array's header is too long")
        header = ast.literal_eval(stream.read(length).decode("utf-8"))
        dtype, shape = np.dtype(header["descr"]), header["shape"]
    except ModelFileError:
        raise
    except Exception as error:
        raise ModelFileError(f"{name}: not an array") from error
    if dtype.hasobject:
        raise ModelFileError(f"{name}: an array of Python objects is not allowed")
    if not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape):
        raise ModelFileError(f"{name}: not an array")
    if len(shape) > 4 or math.prod(shape) * dtype.itemsize != len(data) - stream.tell():
        raise ModelFileError(f"{name}: the array's size is not what its header says")


def check_sparse_member(name: str, data: bytes, max_bytes: int) -> None:
    """An .npz member: an archive of arrays, each within its bounds."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_bounds(archive.infolist(), max_bytes)
            for part in archive.namelist():
                check_array_member(f"{name}/{part}", archive.read(part))
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError) as error:
        raise ModelFileError(f"{name}: damaged: {error}") from error


def _check_bounds(infos: list[zipfile.ZipInfo], max_bytes: int) -> None:
    if len(infos) > MAX_MEMBERS:
        raise ModelFileError(f"it has {len(infos)} members, more than {MAX_MEMBERS}")
    total = sum(info.file_size for info in infos)
    if total > max_bytes:
        raise ModelFileError(
            f"it unpacks to {total:,} bytes, more than max_bytes={max_bytes:,} allows"
        )
    for info in infos:
        if info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            raise ModelFileError(f"member {info.filename!r}: unknown compression")


def _member(archive: zipfile.ZipFile, name: str, listed: Any) -> bytes:
    try:
        data = archive.read(name)
    except Exception as error:  # a wrong checksum, a broken stream, a password
        raise ModelFileError(f"member {name!r} is damaged: {error}") from error
    if not isinstance(listed, dict) or listed.get("sha256") != hashlib.sha256(data).hexdigest():
        raise ModelFileError(f"member {name!r} was changed: it does not match its checksum")
    return data


def _manifest(manifest: Any) -> dict[str, Any]:
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelFileError(f"not a tausvm model: {MANIFEST} does not say so")
    version = manifest.get("format_version")
    if version != FORMAT_VERSION:
        raise ModelFileError(
            f"its format is version {version!r}, this tausvm reads version {FORMAT_VERSION}"
        )
    if not isinstance(manifest.get("members"), dict):
        raise ModelFileError(f"{MANIFEST} lists no members")
    return manifest


def _json(data: bytes, name: str) -> Any:
    if len(data) > MAX_JSON_BYTES:
        raise ModelFileError(f"{name} has {len(data):,} bytes, more than {MAX_JSON_BYTES:,}")
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{name} is not JSON: {error}") from error
