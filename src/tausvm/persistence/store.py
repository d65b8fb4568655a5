"""Saving and loading: the two functions, and what a file tells about itself."""

from __future__ import annotations

import io
import os
import platform
import warnings
import zipfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils.fixes import parse_version

from ..estimators.progress import caller_level
from ..solvers import Status
from .allowed import PLAIN, Allowed, Trusted, check_schema, type_name
from .archive import (
    MAX_BYTES,
    ModelFileError,
    check_array_member,
    check_sparse_member,
    pack,
    read_manifest,
    schema,
    unpack,
)
from .distributions import described, restored
from .fitted import check_model, complete
from .renamed import renewed

#: packages whose versions a file records
RECORDED = ("tausvm", "scikit-learn", "numpy", "scipy", "skops")


#: what skops has to be told beside the objects; how they may occur is checked before
FURTHER = (
    *("numpy.dtype", type_name(Status)),
    *sorted(PLAIN["SparseMatrixNode"] | PLAIN["DictNode"]),
)


@dataclass(frozen=True)
class ModelInfo:
    """What a model file tells about itself.

    Attributes
    ----------
    versions : dict
        Of tausvm, Python and the libraries that wrote the file.
    created : str
        When, in UTC.
    card : dict
        What the writer wanted to tell; the command line keeps columns and scores here.
    """

    versions: dict[str, str] = field(default_factory=dict)
    created: str = ""
    card: dict[str, Any] = field(default_factory=dict)


def save(
    model: Any,
    path: str | os.PathLike[str],
    *,
    card: dict[str, Any] | None = None,
    trusted: Trusted = (),
) -> None:
    """Save a fitted estimator, or a pipeline that holds one, without pickle.

    Parameters
    ----------
    model : estimator
        Of tausvm, alone or with scikit-learn's transformers, selectors and searches around it.
        Of functions NumPy's formulas (``np.log``) and scikit-learn's scores are known. A machine
        of :mod:`tausvm.dask` is saved as the estimator of :mod:`tausvm` that predicts as it does,
        and loads without Dask.
    path : path
        The file, written whole or not at all.
    card : dict, optional
        What to tell about the model, as JSON: :func:`read_info` returns it.
    trusted : classes and functions, optional
        Others that the model may hold, such as a transformer or a kernel of your own, defined in
        a module. :func:`load` has to be given them too.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from tausvm import QuantileSVR
    >>> from tausvm.persistence import load, save
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> model = QuantileSVR(tau=0.9).fit(X, X.ravel())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "model.skops")
    ...     save(model, file)
    ...     same = load(file)
    >>> bool((same.predict(X) == model.predict(X)).all())
    True
    """
    skops = _skops()
    single = getattr(model, "single", None)
    model = single() if callable(single) else model
    allowed = Allowed.with_trusted(trusted)
    try:
        written = skops.dumps(described(model))
    except Exception as error:  # what skops says about a type it does not know
        raise ValueError(f"{type(model).__name__} cannot be saved: {error}") from error
    with zipfile.ZipFile(io.BytesIO(written)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    try:
        check_schema(schema(members), allowed)
    except ModelFileError as error:
        raise ValueError(f"{type(model).__name__} cannot be saved: {error}") from error
    told = {
        "created": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
        "versions": {"python": platform.python_version(), **{p: version(p) for p in RECORDED}},
        "model": type(model).__name__,
        "card": card or {},
    }
    _write(Path(path), pack(members, told))


def load(
    path: str | os.PathLike[str],
    *,
    trusted: Trusted = (),
    max_bytes: int = MAX_BYTES,
) -> Any:
    """Load a model that :func:`save` wrote.

    The file is checked before anything is built: checksums, sizes, and every type in it against
    a fixed list. A file that was damaged, changed or comes from elsewhere gives one
    :class:`ModelFileError`, and nothing of it is run.

    A checksum tells of accidents, not of intent: whoever can write the file can make a model
    that predicts something else. It cannot make your computer run something else.

    Parameters
    ----------
    path : path
    trusted : classes and functions, optional
        Others that the file may hold, such as a transformer of your own.
    max_bytes : int
        Bound on the size of the file, and on what it unpacks to.

    Returns
    -------
    model : estimator
        It predicts the same bits as the one that was saved.
    """
    return load_with_info(path, trusted=trusted, max_bytes=max_bytes)[0]


def load_with_info(
    path: str | os.PathLike[str],
    *,
    trusted: Trusted = (),
    max_bytes: int = MAX_BYTES,
) -> tuple[Any, ModelInfo]:
    """As :func:`load`, with what the file tells about itself."""
    skops = _skops()
    file = Path(path)
    data = _read(file, max_bytes)
    allowed = Allowed.with_trusted(trusted)
    newer = ""
    try:
        manifest, members = unpack(data, max_bytes)
        newer = _newer(_info(manifest).versions)
        described = schema(members)
        today = renewed(described, members)
        if today is not None:
            data, members = pack(today, {}), today
        arrays, sparse = check_schema(described, allowed)
        for name in arrays | sparse:
            if name not in members:
                raise ModelFileError(f"its schema names a member {name!r} that it does not have")
        for name in arrays:
            check_array_member(name, members[name])
        for name in sparse:
            check_sparse_member(name, members[name], max_bytes)
        with warnings.catch_warnings():
            if newer:  # told below, once instead of once a part
                warnings.simplefilter("ignore", InconsistentVersionWarning)
            model = restored(skops.loads(data, trusted=[*allowed.names, *FURTHER]))
        complete(model)
        check_model(model)
    except ModelFileError as error:
        raise ModelFileError(f"{file}: {newer}{error}") from error
    except Exception as error:  # a file made to look right: whatever its parts lead to
        kind = type(error).__name__
        raise ModelFileError(
            f"{file}: {newer or 'damaged: '}it does not make a model ({kind})"
        ) from error
    if newer:
        warnings.warn(
            f"{file}: {newer}its predictions may differ", UserWarning, stacklevel=caller_level()
        )
    return model, _info(manifest)


def read_info(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> ModelInfo:
    """What a model file tells about itself, without loading the model.

    Parameters
    ----------
    path : path
    max_bytes : int
        As in :func:`load`.

    Returns
    -------
    info : ModelInfo
    """
    file = Path(path)
    try:
        return _info(read_manifest(_read(file, max_bytes), max_bytes))
    except ModelFileError as error:
        raise ModelFileError(f"{file}: {error}") from error


def _newer(versions: dict[str, Any]) -> str:
    """What wrote the file and is newer here, as the beginning of a sentence."""
    for package in ("tausvm", "scikit-learn"):
        wrote, here = str(versions.get(package, "0")), version(package)
        if parse_version(wrote) > parse_version(here):
            return f"it was written by {package} {wrote}, and here is {here}, update that: "
    return ""


def _info(manifest: dict[str, Any]) -> ModelInfo:
    versions, card = manifest.get("versions"), manifest.get("card")
    return ModelInfo(
        versions=versions if isinstance(versions, dict) else {},
        created=str(manifest.get("created", "")),
        card=card if isinstance(card, dict) else {},
    )


def _read(file: Path, max_bytes: int) -> bytes:
    """The bytes of a file that is not too large."""
    with file.open("rb") as stream:
        data = stream.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise ModelFileError(f"{file}: larger than max_bytes={max_bytes:,}")
    return data


def _write(file: Path, data: bytes) -> None:
    """Whole or not at all: a new file takes the place of an old one."""
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        part.write_bytes(data)
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError(
            "saving and loading models needs skops, which is not installed: "
            "pip install 'tausvm[models]'"
        ) from error
    return skops.io
