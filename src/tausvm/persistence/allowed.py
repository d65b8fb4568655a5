"""What a model file may hold: an explicit list, checked before anything is built.

skops decides by name what to import. Here every node of the schema is compared with a list first:
which kinds of node, and for each kind which types. Functions, methods, partial objects and
everything else that could be called with chosen arguments are not on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from sklearn import (
    compose,
    decomposition,
    impute,
    kernel_approximation,
    model_selection,
    pipeline,
    preprocessing,
)

from .. import estimators, selection, solvers, tabular
from ..estimators.data import TrainingSet
from ..kernels import Points, scalar
from ..operators import products
from ..selection.committee import Committee
from ..solvers import path
from ..solvers.landmarks import LandmarkResult, Sparsification
from ..solvers.units import Units
from ..tabular import codes
from .archive import ModelFileError

#: nodes of plain data, and the types they may be of
PLAIN = {
    "JsonNode": {"builtins.str"},
    "DictNode": {"builtins.dict", "collections.OrderedDict"},
    "ListNode": {"builtins.list"},
    "TupleNode": {"builtins.tuple"},
    "SetNode": {"builtins.set"},
    "SliceNode": {"builtins.slice"},
    "DTypeNode": {"numpy.dtype"},
    "MaskedArrayNode": {"numpy.ma.MaskedArray"},
    "SparseMatrixNode": {
        f"scipy.sparse.{name}"
        for name in ("_csr.csr_matrix", "_csr.csr_array", "_csc.csc_matrix", "_csc.csc_array")
    },
}
#: scalars and arrays of NumPy, as types and as values
NUMBERS = {
    f"numpy.{name}"
    for name in (
        *("bool", "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"),
        *("uint64", "float32", "float64", "str_"),
    )
}
PRIMITIVES = {f"builtins.{name}" for name in ("str", "int", "float", "bool", "NoneType")}
#: what skops' own protocol was when this list was made; older ones have other nodes
PROTOCOL = 2
MAX_DEPTH = 200

#: of scikit-learn: what may stand before or around a machine, and the folds of a selection
COMPANIONS: tuple[type, ...] = (
    pipeline.Pipeline,
    pipeline.FeatureUnion,
    compose.ColumnTransformer,
    compose.TransformedTargetRegressor,
    decomposition.PCA,
    decomposition.TruncatedSVD,
    impute.MissingIndicator,
    impute.SimpleImputer,
    kernel_approximation.Nystroem,
    kernel_approximation.RBFSampler,
    preprocessing.Binarizer,
    preprocessing.FunctionTransformer,  # "passthrough"; with a function it is refused below
    preprocessing.KBinsDiscretizer,
    preprocessing.MaxAbsScaler,
    preprocessing.MinMaxScaler,
    preprocessing.Normalizer,
    preprocessing.OneHotEncoder,
    preprocessing.OrdinalEncoder,
    preprocessing.PolynomialFeatures,
    preprocessing.PowerTransformer,
    preprocessing.QuantileTransformer,
    preprocessing.RobustScaler,
    preprocessing.SplineTransformer,
    preprocessing.StandardScaler,
    model_selection.GroupKFold,
    model_selection.KFold,
    model_selection.RepeatedKFold,
    model_selection.ShuffleSplit,
    model_selection.TimeSeriesSplit,
)


def type_name(cls: type) -> str:
    """A type as a schema writes it."""
    return f"{cls.__module__}.{cls.__qualname__}"


@cache
def own_types() -> frozenset[type]:
    """The classes of tausvm that a fitted estimator is made of."""
    public = [
        getattr(module, name)
        for module in (estimators, selection, tabular)
        for name in module.__all__
    ]
    parts = [
        scalar.Linear,
        scalar.Polynomial,
        scalar.Sigmoid,
        scalar.RBF,
        scalar.Laplacian,
        scalar.Exponential,
        solvers.Progress,
        solvers.SolverResult,
        LandmarkResult,
        Sparsification,
        *solvers.every_settings(),
        path.PathProblem,
        path.PathResult,
        path.Chain,
        path.TauPath,
        path.MovingBox,
        Units,
        Committee,
        TrainingSet,
        Points,
        *codes.CODES,
        products.KernelProducts,
        products.LinearProducts,
        products.MatrixProducts,
    ]
    return frozenset(cls for cls in (*public, *parts) if isinstance(cls, type))


def trusted_names(extra: Iterable[type] = ()) -> frozenset[str]:
    """The objects that may be built from their attributes."""
    return frozenset(type_name(cls) for cls in (*own_types(), *COMPANIONS, *extra))


def check_schema(schema: Any, objects: frozenset[str]) -> tuple[set[str], set[str]]:
    """Refuse every node that is not on the list; the members that arrays are read from.

    Returns
    -------
    arrays, sparse : sets of str
        Names of .npy and of .npz members.
    """
    if not isinstance(schema, dict) or schema.get("protocol") != PROTOCOL:
        raise ModelFileError("its schema is not one that this tausvm reads")
    arrays: set[str] = set()
    sparse: set[str] = set()
    for node in _nodes(schema):
        loader, name = _identity(node)
        if loader == "CachedNode":
            continue
        if loader in {"NdArrayNode", "SparseMatrixNode"} and "file" in node:
            if not isinstance(node["file"], str):
                raise ModelFileError("its schema names no member for an array")
            (arrays if loader == "NdArrayNode" else sparse).add(node["file"])
        if name not in _types_of(loader, objects):
            raise ModelFileError(f"it holds a {name} ({loader}), which is not allowed in a model")
    return arrays, sparse


def _types_of(loader: str, objects: frozenset[str]) -> Iterable[str]:
    """The types that a kind of node may be of; none for a kind that is not allowed."""
    match loader:
        case "ObjectNode":
            return objects
        case "NdArrayNode":
            return NUMBERS | {"numpy.ndarray"}
        case "TypeNode":
            return NUMBERS | PRIMITIVES
        case "ConstructorFromReduceNode":  # an enumeration by its value
            return {type_name(solvers.Status)}
    return PLAIN.get(loader, ())


def _identity(node: dict[str, Any]) -> tuple[str, str]:
    """The kind of a node and the name of its type."""
    loader, module, cls = (node.get(key) for key in ("__loader__", "__module__", "__class__"))
    if not (isinstance(loader, str) and isinstance(module, str) and isinstance(cls, str)):
        raise ModelFileError("its schema has a node without a type")
    return loader, f"{module}.{cls}"


def _nodes(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every JSON object that could be taken for a node, without recursion."""
    stack: list[tuple[Any, int]] = [(schema, 0)]
    while stack:
        item, depth = stack.pop()
        if depth > MAX_DEPTH:
            raise ModelFileError(f"its schema is nested more than {MAX_DEPTH} deep")
        if isinstance(item, dict):
            if any(key.startswith("__") and key != "__id__" for key in item):
                yield item
            stack.extend((value, depth + 1) for value in item.values())
        elif isinstance(item, list):
            stack.extend((value, depth + 1) for value in item)
