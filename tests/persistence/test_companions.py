"""What people build around a machine can be saved, and a refusal says what to do."""

from __future__ import annotations

import json
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import loguniform, randint
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import (
    BaggingRegressor,
    RandomForestRegressor,
    StackingRegressor,
    VotingRegressor,
)
from sklearn.feature_selection import (
    RFE,
    RFECV,
    SelectFromModel,
    SelectKBest,
    SelectPercentile,
    SequentialFeatureSelector,
    VarianceThreshold,
    f_regression,
    mutual_info_regression,
)
from sklearn.linear_model import Lasso, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    PredefinedSplit,
    RandomizedSearchCV,
    TimeSeriesSplit,
)
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
)

from tausvm import SVR, LinearSVR, QuantileSVR, TauSVC
from tausvm.exceptions import SmallCWarning
from tausvm.metrics import pinball_scorer

pytest.importorskip("skops", reason="saving models needs skops")

from tausvm.persistence import ModelFileError, load, save
from tausvm.persistence.archive import MANIFEST, pack, unpack

pytestmark = [
    pytest.mark.filterwarnings("ignore", category=SmallCWarning),
    pytest.mark.filterwarnings("ignore:Features .* are constant"),
]


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    return X, np.exp(0.3 * X[:, 0] + 0.1 * rng.normal(size=40))


def before(*steps):
    return make_pipeline(*steps, SVR())


COLUMNS = ColumnTransformer(
    [("scaled", StandardScaler(), [0]), ("exp", FunctionTransformer(np.exp), [1])],
    remainder="passthrough",
)
MODELS = {
    "grid": GridSearchCV(SVR(), {"C": [1, 10], "gamma": ["scale", 0.5]}, cv=2),
    "grid by a name": GridSearchCV(SVR(), {"C": [1, 10]}, scoring="neg_mean_absolute_error", cv=2),
    "grid by our scorer": GridSearchCV(
        QuantileSVR(tau=[0.2, 0.8]), {"C": [1, 10]}, scoring=pinball_scorer(), cv=2
    ),
    "grid by two": GridSearchCV(
        SVR(), {"C": [1, 10]}, scoring=["r2", "neg_max_error"], refit="r2", cv=2
    ),
    "grid of a pipeline": GridSearchCV(
        before(StandardScaler()), {"svr__C": [1, 10]}, cv=TimeSeriesSplit(2)
    ),
    "grid of given folds": GridSearchCV(
        SVR(), {"C": np.logspace(0, 1, 2)}, cv=PredefinedSplit(np.arange(40) % 2)
    ),
    "random of lists": RandomizedSearchCV(SVR(), {"C": [1, 9]}, n_iter=2, cv=2, random_state=0),
    "random of distributions": RandomizedSearchCV(
        SVR(),
        [{"C": loguniform(1, 10)}, {"kernel": ["poly"], "degree": randint(1, high=3)}],
        n_iter=3,
        cv=2,
        random_state=0,
    ),
    "target by functions": TransformedTargetRegressor(SVR(), func=np.log, inverse_func=np.exp),
    "target by a scaler": TransformedTargetRegressor(SVR(), transformer=StandardScaler()),
    "splines": before(SplineTransformer()),
    "polynomials": before(PolynomialFeatures()),
    "k best": before(SelectKBest(f_regression, k=2)),
    "percentile": before(SelectPercentile(mutual_info_regression, percentile=50)),
    "from our model": before(SelectFromModel(LinearSVR())),
    "from lasso": before(SelectFromModel(Lasso(alpha=0.01))),
    "rfe": before(RFE(LinearSVR(), n_features_to_select=2)),
    "rfecv": before(RFECV(LinearSVR(), cv=2)),
    "sequential": before(SequentialFeatureSelector(Ridge(), n_features_to_select=1, cv=2)),
    "variance": before(VarianceThreshold()),
    "columns": before(COLUMNS),
    "function": before(FunctionTransformer(np.arcsinh, inverse_func=np.sinh)),
    "bagging": BaggingRegressor(SVR(), n_estimators=2, random_state=0),
    "stack": StackingRegressor([("svr", SVR()), ("ridge", Ridge())], cv=2),
    "vote": VotingRegressor([("svr", SVR()), ("ridge", Ridge())]),
    "outputs": MultiOutputRegressor(SVR()),
    "calibrated": CalibratedClassifierCV(TauSVC(), cv=2),
    "calibrated by steps": CalibratedClassifierCV(TauSVC(), cv=2, method="isotonic"),
}


@pytest.mark.parametrize("name", MODELS)
def test_it_comes_back_with_the_same_bits(name: str, tmp_path: Path) -> None:
    X, y = data()
    if name == "outputs":
        y = np.column_stack([y, -y])
    model = MODELS[name].fit(X, y > 1 if name.startswith("calibrated") else y)
    save(model, tmp_path / "model.skops")
    same = load(tmp_path / "model.skops")
    assert type(same) is type(model)
    for method in ("predict", "predict_proba"):
        if hasattr(model, method):
            np.testing.assert_array_equal(getattr(same, method)(X), getattr(model, method)(X))
    if hasattr(model, "best_params_"):
        assert same.best_params_ == model.best_params_
        assert same.score(X, y) == model.score(X, y)
        same.fit(X, y)  # and can be searched again
        assert same.best_params_ == model.best_params_


class Shifted(TransformerMixin, BaseEstimator):
    """A transformer of somebody's own."""

    def fit(self, X, y=None):
        self.shift_ = X.mean(axis=0)
        return self

    def transform(self, X):
        return X - self.shift_


def tripled(X):
    return 3 * X


def plain_kernel(a, b):
    return a @ b.T


@pytest.mark.parametrize(
    ("model", "own"),
    [
        (before(Shifted()), Shifted),
        (before(FunctionTransformer(tripled)), tripled),
        (SVR(kernel=plain_kernel), plain_kernel),
    ],
    ids=["class", "function", "kernel"],
)
def test_what_is_ones_own_is_saved_and_loaded_by_trust(model, own, tmp_path: Path) -> None:
    X, y = data()
    model.fit(X, y)
    file = tmp_path / "model.skops"
    remedy = rf"{own.__name__}.*trusted=\[{own.__name__}\] to save and to load"
    with pytest.raises(ValueError, match=remedy):
        save(model, file)
    save(model, file, trusted=[own])
    with pytest.raises(ModelFileError, match=remedy):
        load(file)
    np.testing.assert_array_equal(load(file, trusted=[own]).predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("model", "remedy"),
    [
        (SVR(random_state=np.random.RandomState(0)), "give an integer as random_state"),
        (before(FunctionTransformer(lambda X: X)), "defined in a module"),
        (before(SelectFromModel(RandomForestRegressor(2))), r"trusted=\[RandomForestRegressor\]"),
    ],
    ids=["random state", "lambda", "forest"],
)
def test_a_refusal_says_what_to_do(model, remedy: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"cannot be saved: .*{remedy}"):
        save(model, tmp_path / "model.skops")


def test_trust_needs_a_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="trusted must hold classes and functions that can be"):
        save(SVR(), tmp_path / "model.skops", trusted=[lambda X: X])


def by_newer(file: Path, **versions: str) -> None:
    """The file as a version to come would have written it."""
    told, parts = unpack(file.read_bytes(), 2**26)
    told["versions"] |= versions
    file.write_bytes(pack(parts, {"versions": told["versions"]}))


@pytest.mark.parametrize("package", ["tausvm", "scikit-learn"])
def test_a_file_of_a_newer_version_is_told_in_one_line(package: str, tmp_path: Path) -> None:
    X, y = data()
    file = tmp_path / "model.skops"
    save(before(StandardScaler()).fit(X, y), file)
    by_newer(file, **{package: "99.1"})
    with pytest.warns(UserWarning) as caught:
        load(file)
    (told,) = caught
    assert f"it was written by {package} 99.1, and here is" in str(told.message)
    assert "\n" not in str(told.message)
    # and where it cannot be read
    save(before(Shifted()).fit(X, y), file, trusted=[Shifted])
    by_newer(file, **{package: "99.1"})
    with pytest.raises(ModelFileError, match=f"written by {package} 99.1") as error:
        load(file)
    assert "\n" not in str(error.value)


def test_a_file_of_this_version_is_loaded_without_a_word(tmp_path: Path) -> None:
    X, y = data()
    save(before(StandardScaler()).fit(X, y), tmp_path / "model.skops")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(tmp_path / "model.skops")


def test_a_name_that_is_no_distribution_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "model.skops"
    save(RandomizedSearchCV(SVR(), {"C": loguniform(1, 10)}), file)
    parts = unpack(file.read_bytes(), 2**26)[1]
    schema = parts["schema.json"].replace(b'"\\"loguniform\\""', b'"\\"bootstrap\\""')
    assert schema != parts["schema.json"]
    file.write_bytes(pack({**parts, "schema.json": schema}, {}))
    with pytest.raises(ModelFileError, match="a distribution 'bootstrap', which SciPy has not"):
        load(file)
    with zipfile.ZipFile(file) as archive:
        assert json.loads(archive.read(MANIFEST))


def test_splines_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    X, y = data()
    model = before(SplineTransformer()).fit(X, y)
    spline = model[0].bsplines_[0]
    spline.t = spline.t[:3]
    save(model, tmp_path / "model.skops")
    with pytest.raises(ModelFileError, match="does not make a model"):
        load(tmp_path / "model.skops")
