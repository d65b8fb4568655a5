"""What a model file may hold: an explicit list, checked before anything is built.

skops decides by name what to import. Here every node of the schema is compared with a list first:
which kinds of node, and for each kind which types. Of functions it has formulas only: NumPy's of
one number, and the scores of scikit-learn and of this library. Methods, partial objects and
everything else that could be called with chosen arguments are not on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from scipy.interpolate import BSpline
from sklearn import (
    calibration,
    compose,
    decomposition,
    ensemble,
    feature_selection,
    impute,
    isotonic,
    kernel_approximation,
    linear_model,
    metrics,
    model_selection,
    multioutput,
    pipeline,
    preprocessing,
)
from sklearn.metrics import _scorer

from .. import estimators, selection, solvers, tabular
from ..estimators.data import TrainingSet
from ..estimators.trend import Trend
from ..kernels import Points, scalar
from ..metrics import LevelScorer, mean_expectile_loss, mean_levels_pinball_loss
from ..operators import products
from ..selection.committee import Committee
from ..solvers import path
from ..solvers.landmarks import LandmarkResult, Sparsification
from ..solvers.units import Units
from ..tabular import codes
from .archive import ModelFileError
from .distributions import Distribution

#: nodes of plain data, and the types they may be of
PLAIN = {
    "JsonNode": {"builtins.str"},
    "DictNode": {"builtins.dict", "collections.OrderedDict", "sklearn.utils._bunch.Bunch"},
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
    preprocessing.FunctionTransformer,  # of a function that is on the list of these
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
    model_selection.PredefinedSplit,
    model_selection.RepeatedKFold,
    model_selection.ShuffleSplit,
    model_selection.RepeatedStratifiedKFold,
    model_selection.StratifiedGroupKFold,
    model_selection.StratifiedKFold,
    model_selection.StratifiedShuffleSplit,
    model_selection.TimeSeriesSplit,
    # searches, with what scores them
    model_selection.GridSearchCV,
    model_selection.RandomizedSearchCV,
    _scorer._MultimetricScorer,
    _scorer._PassthroughScorer,
    _scorer._Scorer,
    LevelScorer,
    Distribution,
    # selectors of features, with the linear models that they ask
    feature_selection.RFE,
    feature_selection.RFECV,
    feature_selection.SelectFdr,
    feature_selection.SelectFpr,
    feature_selection.SelectFromModel,
    feature_selection.SelectFwe,
    feature_selection.SelectKBest,
    feature_selection.SelectPercentile,
    feature_selection.SequentialFeatureSelector,
    feature_selection.VarianceThreshold,
    linear_model.ElasticNet,
    linear_model.Lasso,
    linear_model.LassoCV,
    linear_model.LinearRegression,
    linear_model.LogisticRegression,
    linear_model.Ridge,
    linear_model.RidgeCV,
    # what makes one predictor of several
    calibration.CalibratedClassifierCV,
    calibration._CalibratedClassifier,
    calibration._SigmoidCalibration,
    isotonic.IsotonicRegression,
    ensemble.BaggingRegressor,
    ensemble.StackingRegressor,
    ensemble.VotingRegressor,
    multioutput.MultiOutputRegressor,
    compose.make_column_selector,
    preprocessing.LabelEncoder,
    BSpline,  # of SplineTransformer
)
#: of NumPy: formulas of one number
FORMULAS = (
    *("absolute", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "cbrt", "ceil"),
    *("cos", "cosh", "deg2rad", "degrees", "exp", "exp2", "expm1", "fabs", "floor", "log"),
    *("log10", "log1p", "log2", "negative", "positive", "rad2deg", "radians", "reciprocal"),
    *("rint", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc"),
)


def type_name(cls: Any) -> str:
    """A type or a function as a schema writes it."""
    return f"{cls.__module__}.{cls.__qualname__}"


@cache
def function_names() -> frozenset[str]:
    """The functions that a model may name."""
    scores: list[Callable[..., Any]] = [
        *(metrics.get_scorer(name)._score_func for name in metrics.get_scorer_names()),
        mean_expectile_loss,
        mean_levels_pinball_loss,
        feature_selection.chi2,
        feature_selection.f_classif,
        feature_selection.f_regression,
        feature_selection.mutual_info_classif,
        feature_selection.mutual_info_regression,
        feature_selection.r_regression,
    ]
    # a spline of SciPy holds the function that makes an array of its points
    made_by = getattr(BSpline([0.0, 1.0], [1.0], 0), "_asarray", None)
    functions = [*scores, made_by] if made_by is not None else scores
    return frozenset([f"numpy.{name}" for name in FORMULAS] + [type_name(f) for f in functions])


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
        scalar.FromCallable,
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
        Trend,
        Points,
        *codes.CODES,
        products.KernelProducts,
        products.LinearProducts,
        products.MatrixProducts,
    ]
    return frozenset(cls for cls in (*public, *parts) if isinstance(cls, type))


Trusted = Iterable[type | Callable[..., Any]]


@dataclass(frozen=True)
class Allowed:
    """The names of what a file may hold beside plain data."""

    #: classes, built from their attributes
    objects: frozenset[str]
    functions: frozenset[str]

    @classmethod
    def with_trusted(cls, extra: Trusted = ()) -> Allowed:
        """The list with further classes and functions; a ValueError for what has no name."""
        extra = [extra] if isinstance(extra, type) else list(extra)
        for item in extra:
            name = getattr(item, "__qualname__", None)
            if name is None or "<" in name:
                raise ValueError(
                    "trusted must hold classes and functions that can be imported by their name, "
                    f"got {item!r}"
                )
        types = (*own_types(), *COMPANIONS, *(item for item in extra if isinstance(item, type)))
        functions = (type_name(item) for item in extra if not isinstance(item, type))
        return cls(frozenset(map(type_name, types)), function_names().union(functions))

    @property
    def names(self) -> list[str]:
        return sorted(self.objects | self.functions)


def check_schema(schema: Any, allowed: Allowed) -> tuple[set[str], set[str]]:
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
        if name not in _types_of(loader, allowed):
            raise ModelFileError(
                f"it holds a {name} ({loader}), which is not allowed in a model; "
                + _remedy(loader, name)
            )
    return arrays, sparse


def _remedy(loader: str, name: str) -> str:
    """What a user can do about something that is not on the list."""
    short = name.rpartition(".")[2]
    if loader in {"RandomStateNode", "RandomGeneratorNode"}:
        return "give an integer as random_state instead"
    if loader in {"TreeNode", "LossNode"}:
        return "a file could make its compiled code fail, and no trust can be given to it"
    if "rv_frozen" in name or "rv_continuous" in name or "rv_discrete" in name:
        return "save best_estimator_ of the search, or search over lists of values"
    if "<" in name or loader not in {"ObjectNode", "FunctionNode"}:
        return "use a class or a function that is defined in a module, and trust that"
    return f"if you trust it, give trusted=[{short}] to save and to load"


def _types_of(loader: str, allowed: Allowed) -> Iterable[str]:
    """The types that a kind of node may be of; none for a kind that is not allowed."""
    match loader:
        case "ObjectNode":
            return allowed.objects
        case "FunctionNode":
            return allowed.functions
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
