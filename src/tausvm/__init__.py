"""Support vector machines at every level: quantiles, expectiles, ε-insensitive regression
and cost-sensitive classification, each fit with a certificate of how close to optimal it is.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .estimators import (
        SVR,
        ExpectileSVR,
        JointExpectileSVR,
        JointQuantileSVR,
        JointSVR,
        LinearExpectileSVR,
        LinearQuantileSVR,
        LinearSVR,
        QuantileSVR,
        TauPathSVC,
        TauPathSVR,
        TauSVC,
    )
    from .selection import (
        SVRCV,
        ExpectileSVRCV,
        FeatureMetric,
        JointExpectileSVRCV,
        JointQuantileSVRCV,
        JointSVRCV,
        LinearExpectileSVRCV,
        LinearQuantileSVRCV,
        LinearSVRCV,
        QuantileSVRCV,
        TauPathSVCCV,
    )
    from .tabular import TabularExpectileSVR, TabularQuantileSVR

__version__ = "0.1.0"

__all__ = [
    "SVR",
    "SVRCV",
    "ExpectileSVR",
    "ExpectileSVRCV",
    "FeatureMetric",
    "JointExpectileSVR",
    "JointExpectileSVRCV",
    "JointQuantileSVR",
    "JointQuantileSVRCV",
    "JointSVR",
    "JointSVRCV",
    "LinearExpectileSVR",
    "LinearExpectileSVRCV",
    "LinearQuantileSVR",
    "LinearQuantileSVRCV",
    "LinearSVR",
    "LinearSVRCV",
    "QuantileSVR",
    "QuantileSVRCV",
    "TabularExpectileSVR",
    "TabularQuantileSVR",
    "TauPathSVC",
    "TauPathSVCCV",
    "TauPathSVR",
    "TauSVC",
    "__version__",
]

#: parts that may be named after ``import tausvm`` alone
_PARTS = (
    *("dask", "estimators", "exceptions", "kernels", "losses", "metrics", "operators"),
    *("persistence", "plotting", "selection", "solvers", "tabular"),
)


def _home(name: str) -> str:
    """The part that a public class is in."""
    if name.startswith("Tabular"):
        return "tabular"
    return "selection" if name.endswith("CV") or name == "FeatureMetric" else "estimators"


def __getattr__(name: str) -> Any:
    """Load what is asked for: whoever wants a version or one part does not wait for the rest."""
    if name in _PARTS:
        return import_module(f".{name}", __name__)
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_home(name)}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, *_PARTS])
