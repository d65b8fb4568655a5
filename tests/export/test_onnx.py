"""Exported graphs agree with predict, in a runtime that knows nothing of Python's models."""

from __future__ import annotations

import doctest
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)

import tausvm.export.onnx_model
from tausvm import SVR, QuantileSVR, TauPathSVC, TauPathSVCCV, TauSVC
from tausvm.export import to_onnx
from tausvm.metrics import crossing_rate

from ..estimators.models import ESTIMATORS, LEARNED, data, fitted

onnx = pytest.importorskip("onnx", reason="the export needs the onnx extra")
runtime = pytest.importorskip("onnxruntime", reason="onnxruntime runs what was exported")


def run(exported, inputs) -> dict[str, np.ndarray]:
    """What the runtime makes of an exported model."""
    session = runtime.InferenceSession(
        exported.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    given = inputs if isinstance(inputs, dict) else {"X": np.asarray(inputs, dtype=np.float64)}
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, given), strict=True))


def agree(model, X, inputs=None) -> None:
    """Predictions agree to 1e-5 of their scale, labels altogether."""
    found = run(to_onnx(model), X if inputs is None else inputs)
    expected = model.predict(X)
    if "label" in found:
        assert list(found["label"]) == list(expected)
        # without a level a path answers for all of them, and its export for ½
        path = model.best_estimator_ if isinstance(model, TauPathSVCCV) else model
        level = {"tau": 0.5} if isinstance(path, TauPathSVC) else {}
        values = path.decision_function(X, **level)
        np.testing.assert_allclose(
            found["decision"].reshape(values.shape), values, rtol=1e-5, atol=1e-5
        )
        return
    assert found["prediction"].dtype == np.float64
    np.testing.assert_allclose(
        found["prediction"].reshape(expected.shape), expected, rtol=1e-5, atol=1e-5
    )


def test_docstrings() -> None:
    assert doctest.testmod(tausvm.export.onnx_model).failed == 0


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator(name: str) -> None:
    agree(*fitted(name))


@pytest.mark.parametrize("name", LEARNED)
def test_learned_features_agree_to_rounding(name: str) -> None:
    model, X = fitted(name)
    found = run(to_onnx(model), X)["prediction"].ravel()
    np.testing.assert_allclose(found, model.predict(X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "name", ["SVR", "SVR:laplacian", "SVR:exponential", "SVR:linear", "QuantileSVR"]
)
def test_data_far_from_the_origin(name: str) -> None:
    X, y = data(name)
    far = X + 1e6
    model = fitted(name)[0].__class__(**fitted(name)[0].get_params()).fit(far, y)
    agree(model, far[:10] + 0.01)


def test_sparse_training_data() -> None:
    X, y = data("SVR")
    agree(SVR().fit(sparse.csr_matrix(X), y), X)


def test_clipped_levels_stay_inside() -> None:
    X, y = data("QuantileSVR:clip")
    model = QuantileSVR(tau=[0.05, 0.95], C=1000, gamma=2.0, clip="range").fit(X[:20], y[:20])
    values = run(to_onnx(model), X)["prediction"]
    assert values.min() >= y[:20].min()
    assert values.max() <= y[:20].max()
    agree(model, X)


def test_a_constant_model() -> None:
    X = np.ones((6, 2))
    agree(SVR(epsilon=10.0).fit(X, np.arange(6.0)), X)


@pytest.mark.parametrize(
    "step",
    [
        StandardScaler(),
        StandardScaler(with_mean=False),
        StandardScaler(with_std=False),
        MinMaxScaler((-1, 1)),
        MaxAbsScaler(),
        RobustScaler(),
        SimpleImputer(),
        FunctionTransformer(),
        make_pipeline(MinMaxScaler(), StandardScaler()),
        "passthrough",
    ],
    ids=str,
)
def test_steps_before_a_machine(step) -> None:
    X, y = data("SVR")
    model = Pipeline([("step", step), ("machine", QuantileSVR(tau=[0.2, 0.8]))]).fit(X, y)
    agree(model, X)


def no_matter(model, X, y) -> float:
    return 0.0


def test_levels_in_no_order_that_cross() -> None:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(50, 2)), rng.normal(size=50)
    model = QuantileSVR(tau=[0.55, 0.45, 0.5], C=100.0, gamma=5.0)
    raw = model.fit(X, y).predict(X, raw=True)
    assert crossing_rate(raw, tau=model.tau) > 0.1
    agree(model, X)
    agree(model.set_params(ordered=False), X)
    search = GridSearchCV(model.set_params(ordered=True), {"C": [100.0]}, scoring=no_matter).fit(
        X, y
    )
    np.testing.assert_allclose(run(to_onnx(search), X)["prediction"], search.predict(X), atol=1e-5)


@pytest.mark.parametrize(
    "name",
    ["TauPathSVC", "TauPathSVC:linear", "TauPathSVCCV", "TauPathSVR", "TauPathSVR:unsorted"],
)
def test_levels_of_a_path(name: str) -> None:
    model, X = fitted(name)
    taus = [0.1, 0.45, 0.9]
    if "SVR" in name:
        taus = [0.9, 0.48, 0.1, 0.5, 0.52]
    found = run(to_onnx(model, tau=taus), X)
    if "SVR" in name:
        np.testing.assert_allclose(found["prediction"], model.predict(X, tau=taus), atol=1e-5)
        return
    np.testing.assert_allclose(found["decision"], model.decision_function(X, tau=taus), atol=1e-5)
    assert (found["label"] == model.predict(X, tau=taus)).all()
    one = run(to_onnx(model, tau=0.2), X)
    assert list(one["label"]) == list(model.predict(X, tau=0.2))


@pytest.mark.parametrize("labels", [["no", "yes"], [0, 1], [-1, 1], [False, True]])
def test_labels_of_all_kinds(labels) -> None:
    X, y = data("TauSVC")
    agree(TauSVC().fit(X, np.where(y == "yes", labels[1], labels[0])), X)


def test_columns_by_name_with_categories_and_holes() -> None:
    pandas = pytest.importorskip("pandas")
    X, y = data("SVR")
    frame = pandas.DataFrame(
        {
            "width": X[:, 0],
            "height": np.where(np.arange(50) % 7 == 0, np.nan, X[:, 1]),
            "kind": np.array(["a", "b", "c"])[np.arange(50) % 3],
            "code": np.arange(50) % 4,
        }
    )
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    encode = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    prepare = ColumnTransformer(
        [
            ("numbers", numbers, ["width", "height"]),
            ("text", encode, ["kind"]),
            ("codes", encode, ["code"]),
        ]
    )
    model = make_pipeline(prepare, QuantileSVR(tau=[0.1, 0.9])).fit(frame, y)
    frame.loc[3, "kind"] = "new"
    inputs = {
        name: frame[[name]].to_numpy(object if name == "kind" else np.float64) for name in frame
    }
    agree(model, frame, inputs)


def test_pipelines_of_the_command_line(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("typer", reason="the command line needs the cli extra")
    from tausvm.cli import main
    from tausvm.persistence import load

    X, y = data("SVR")
    frame = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "kind": ["u", "v"] * 25, "y": y})
    frame.to_csv(tmp_path / "d.csv", index=False)
    fit = ["fit", str(tmp_path / "d.csv"), "--target", "y", "--save", str(tmp_path / "m.skops")]
    assert main(fit) == 0
    model = load(tmp_path / "m.skops")
    inputs = {name: frame[[name]].to_numpy(np.float64) for name in ("a", "b")}
    inputs["kind"] = frame[["kind"]].to_numpy(object)
    agree(model, frame.drop(columns="y"), inputs)
    frame.loc[2, "a"], frame.loc[5, "kind"] = np.nan, None
    frame.to_csv(tmp_path / "d.csv", index=False)
    assert main([*fit, "--impute", "--force"]) == 0
    model = load(tmp_path / "m.skops")
    frame.loc[7, "kind"] = "unseen"
    inputs["a"] = frame[["a"]].to_numpy(np.float64)
    inputs["kind"] = frame[["kind"]].fillna("").to_numpy(object)  # missing text is ""
    agree(model, frame.drop(columns="y"), inputs)


def test_the_file_tells_what_it_is(tmp_path: Path) -> None:
    model, X = fitted("QuantileSVR")
    to_onnx(model, tmp_path / "model.onnx")
    read = onnx.load(tmp_path / "model.onnx")
    told = {entry.key: entry.value for entry in read.metadata_props}
    assert told["estimator"] == "QuantileSVR"
    assert json.loads(told["tau"]) == [0.1, 0.5, 0.9]
    np.testing.assert_allclose(run(read, X)["prediction"], model.predict(X), atol=1e-5)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (SVR(kernel=lambda a, b: a @ b.T), "kernel"),
        (make_pipeline(PowerTransformer(), SVR()), "PowerTransformer"),
        (make_pipeline(FunctionTransformer(np.abs), SVR()), "FunctionTransformer"),
    ],
)
def test_what_cannot_be_exported_is_named(model, message) -> None:
    X, y = data("SVR")
    with pytest.raises(ValueError, match=message):
        to_onnx(model.fit(X, y))


def test_levels_are_for_paths() -> None:
    with pytest.raises(ValueError, match="tau is for machines that have every level"):
        to_onnx(fitted("SVR")[0], tau=0.5)


def test_precomputed_kernels_cannot_be_exported() -> None:
    X, y = data("SVR")
    with pytest.raises(ValueError, match="precomputed"):
        to_onnx(SVR(kernel="precomputed").fit(X @ X.T, y))
