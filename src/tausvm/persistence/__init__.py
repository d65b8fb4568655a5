"""Models in files without pickle: nothing in a file is run when it is read. Needs skops."""

from .archive import MAX_BYTES, ModelFileError
from .store import ModelInfo, load, load_with_info, read_info, save

__all__ = [
    "MAX_BYTES",
    "ModelFileError",
    "ModelInfo",
    "load",
    "load_with_info",
    "read_info",
    "save",
]
