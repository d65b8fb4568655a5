"""The same data in another form give the same model."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

import tausvm.estimators.machine as machine
from tausvm import SVR, ExpectileSVR, LinearSVR, QuantileSVR, TauSVC

from .data import ESTIMATORS, output, targets, wave

X, Y = wave(80, 3)
NEW = wave(50, 3, seed=1)[0]
KERNELS = ("linear", "poly", "rbf", "laplacian", "sigmoid")


def fitted(estimator, X_=X, **parameters):
    parameters = {"tol": 1e-8, "gamma": 0.4, **parameters}
    return estimator(**parameters).fit(X_, targets(estimator, Y))


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(
    ("kernel", "function"), [("rbf", rbf_kernel), ("laplacian", laplacian_kernel)]
)
def test_precomputed_and_callable(estimator, kernel, function):
    expected = output(fitted(estimator, kernel=kernel), NEW)
    given = fitted(estimator, function(X, gamma=0.4), kernel="precomputed")
    np.testing.assert_allclose(output(given, function(NEW, X, gamma=0.4)), expected, atol=1e-6)
    called = fitted(estimator, kernel=lambda a, b: function(a, b, gamma=0.4))
    np.testing.assert_allclose(output(called, NEW), expected, atol=1e-6)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("kernel", [k for k in KERNELS if k != "sigmoid"])
@pytest.mark.parametrize("gamma", ["scale", "auto", 0.4])
def test_csr_is_dense(estimator, kernel, gamma):
    sparse_X = np.where(np.abs(X) < 0.7, 0.0, X)
    sparse_new = np.where(np.abs(NEW) < 0.7, 0.0, NEW)
    dense = fitted(estimator, sparse_X, kernel=kernel, gamma=gamma)
    csr = fitted(estimator, sp.csr_matrix(sparse_X), kernel=kernel, gamma=gamma)
    assert sp.issparse(csr.support_vectors_)
    expected = output(dense, sparse_new)
    scale = np.abs(expected).max()
    for model in (dense, csr):
        for form in (sparse_new, sp.csr_matrix(sparse_new), sp.csc_array(sparse_new)):
            np.testing.assert_allclose(output(model, form), expected, atol=1e-5 * scale)


def test_csr_with_entries_given_twice():
    once = sp.csr_matrix(X)
    twice = sp.csr_matrix(
        (np.repeat(once.data / 2, 2), np.repeat(once.indices, 2), 2 * once.indptr), once.shape
    )
    expected = fitted(SVR, once, gamma="scale").predict(NEW)
    np.testing.assert_allclose(fitted(SVR, twice, gamma="scale").predict(NEW), expected, atol=1e-7)
    assert twice.nnz == 2 * once.nnz  # the input is left as it was


def shuffled(X_):
    """The same matrix with the entries of its rows in another order, and each in two parts."""
    once = sp.csr_matrix(X_)
    order = np.arange(once.nnz)
    for begin, end in zip(once.indptr[:-1], once.indptr[1:], strict=True):
        order[begin:end] = order[begin:end][::-1]
    data, indices = once.data[order], once.indices[order]
    return sp.csr_matrix(
        (np.repeat(data / 2, 2), np.repeat(indices, 2), 2 * once.indptr), once.shape
    )


def wide(X_):
    matrix = sp.csr_matrix(X_)
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


def read_only(X_):
    matrix = sp.csr_matrix(X_)
    for array in (matrix.data, matrix.indices, matrix.indptr):
        array.setflags(write=False)
    return matrix


@pytest.mark.parametrize("form", [wide, shuffled, read_only, sp.csr_array, sp.lil_array])
@pytest.mark.parametrize("kernel", [k for k in KERNELS if k != "sigmoid"])
def test_forms_of_csr(kernel, form):
    """Index arrays of any width and order, in fit and in prediction; none is changed."""
    expected = output(fitted(SVR, sp.csr_matrix(X), kernel=kernel), sp.csr_matrix(NEW))
    given, new = form(X), form(NEW)
    before = new.copy()
    model = fitted(SVR, given, kernel=kernel)
    np.testing.assert_allclose(output(model, new), expected, atol=1e-6)
    for array in ("data", "indices", "indptr") if new.format == "csr" else ():
        np.testing.assert_array_equal(getattr(new, array), getattr(before, array))


def test_csr_of_mixed_widths_for_linear_machines():
    mixed = sp.csr_matrix(X)
    mixed.indices = mixed.indices.astype(np.int64)
    expected = LinearSVR(tol=1e-10).fit(X, Y).predict(NEW)
    np.testing.assert_allclose(LinearSVR(tol=1e-10).fit(mixed, Y).predict(NEW), expected, atol=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear"])
def test_csr_without_entries(kernel):
    model = fitted(SVR, sp.csr_matrix(X.shape), kernel=kernel, gamma="scale")
    np.testing.assert_allclose(model.predict(np.zeros((2, 3))), np.full(2, model.intercept_[0]))


def test_object_arrays():
    expected = fitted(SVR).predict(NEW)
    np.testing.assert_array_equal(fitted(SVR, X.astype(object)).predict(NEW), expected)
    with pytest.raises(ValueError, match="could not convert string to float: 'a'"):
        fitted(SVR, np.full(X.shape, "a", dtype=object))


@pytest.mark.parametrize("exponent", [-300, -90, 90, 300])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_features_in_any_unit(kernel, exponent):
    """With γ = "scale" the unit of X is nothing: its powers of two do not change a bit."""
    unit = 2.0**exponent
    for parameters in ({}, {"tol": 1e-3, "cache_size": 0.02}):  # rows in float64, and in float32
        parameters = {"gamma": "scale", "kernel": kernel, **parameters}
        expected = fitted(SVR, **parameters).predict(NEW)
        moved = fitted(SVR, unit * X, **parameters).predict(unit * NEW)
        np.testing.assert_allclose(moved, expected, atol=1e-9)


def test_a_column_with_one_entry_far_away():
    """The others keep their digits: they are not moved to where it pulls their mean."""
    far = X.copy()
    far[0, 1] = 1e18
    parameters = {"fit_intercept": False, "gamma": 1.0}
    others = np.arange(80) != 0
    model = SVR(tol=1e-9, **parameters).fit(far, Y)
    alone = SVR(tol=1e-9, **parameters).fit(X[others], Y[others])
    np.testing.assert_allclose(model.predict(NEW), alone.predict(NEW), atol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
def test_sigmoid_and_others_close_their_gap(kernel):
    model = SVR(kernel=kernel, gamma=0.05).fit(X, Y)
    assert model.dual_gap_ <= model.tol


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_float32_read_only_fortran_and_frames(estimator):
    single = X.astype(np.float32)
    expected = output(fitted(estimator, single.astype(np.float64)), NEW)
    read_only = single.astype(np.float64)
    read_only.setflags(write=False)
    frame = pd.DataFrame(single, columns=["a", "b", "c"])
    for form in (single, read_only, np.asfortranarray(single), single.tolist(), frame):
        model = fitted(estimator, form)
        new = pd.DataFrame(NEW, columns=["a", "b", "c"]) if form is frame else NEW
        np.testing.assert_allclose(output(model, new), expected, atol=1e-9)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert model.n_features_in_ == 3


def test_targets_and_weights_as_series():
    y, weight = pd.Series(Y), pd.Series(np.arange(80) % 3)
    expected = SVR().fit(X, Y, np.arange(80) % 3).predict(NEW)
    np.testing.assert_array_equal(SVR().fit(X, y, weight).predict(NEW), expected)
    y.to_numpy().flags.writeable = False
    np.testing.assert_array_equal(SVR().fit(X, y, weight).predict(NEW), expected)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_far_from_the_origin(kernel):
    """A common shift of all points changes nothing, rows held in float32 or not."""
    shift = np.array([1e4, -3e4, 2e4])
    near = fitted(SVR, kernel=kernel, cache_size=0.01)
    far = fitted(SVR, X + shift, kernel=kernel, cache_size=0.01)
    np.testing.assert_allclose(far.predict(NEW + shift), near.predict(NEW), atol=1e-6)
    np.testing.assert_array_equal(far.support_vectors_, (X + shift)[far.support_])


@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid"])
def test_prediction_by_chunks(kernel, monkeypatch):
    model = fitted(QuantileSVR, kernel=kernel, tau=[0.3, 0.7], gamma=0.05)
    expected = model.predict(NEW)
    monkeypatch.setattr(machine, "CHUNK_BYTES", 8 * len(model.support_) * 7)
    np.testing.assert_allclose(model.predict(NEW), expected, rtol=1e-12)


@pytest.mark.parametrize("labels", [[0, 1], [-1, 1], [False, True], ["no", "yes"], [2.0, 7.0]])
def test_labels_of_any_type(labels):
    y = np.array(labels)[(Y > 0).astype(int)]
    model = TauSVC(C=100.0, gamma=1.0).fit(X, y)
    np.testing.assert_array_equal(model.classes_, np.sort(np.array(labels)))
    assert model.predict(X).dtype == y.dtype
    assert model.score(X, y) > 0.9
    assert model.decision_function(NEW).shape == (50,)
    np.testing.assert_array_equal(
        model.predict(NEW), np.where(model.decision_function(NEW) > 0, labels[1], labels[0])
    )


def test_three_classes():
    y = np.array(["low", "middle", "high"])[np.digitize(Y, [-0.5, 0.5])]
    model = TauSVC(C=10.0).fit(X, y)
    values = model.decision_function(NEW)
    assert values.shape == (50, 3)
    assert model.dual_coef_.shape == (3, len(model.support_))
    assert len(model.result_) == 3
    assert model.dual_gap_.shape == model.n_iter_.shape == (3,)
    np.testing.assert_array_equal(model.predict(NEW), model.classes_[values.argmax(axis=1)])
    for k, label in enumerate(model.classes_):
        alone = TauSVC(C=10.0).fit(X, y == label)
        np.testing.assert_allclose(values[:, k], alone.decision_function(NEW), atol=1e-6)


def test_linear_coefficients():
    for estimator in ESTIMATORS:
        model = fitted(estimator, kernel="linear")
        assert model.coef_.shape == (1, 3)
        expected = NEW @ model.coef_[0] + model.intercept_[0]
        np.testing.assert_allclose(output(model, NEW), expected)
    with pytest.raises(AttributeError, match="coef_ exists for kernel='linear' only, not 'rbf'"):
        _ = fitted(ExpectileSVR).coef_
    assert not hasattr(SVR(kernel="linear"), "coef_")


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_sparse_rows_far_from_the_origin(estimator):
    """Distances of sparse rows are those of dense ones, though inner products cancel."""
    X, y = wave(40)
    far = X + 1e6
    y = targets(estimator, y)
    dense, sparse = estimator(gamma=5.0), estimator(gamma=5.0)
    dense.fit(far, y)
    sparse.fit(sp.csr_matrix(far), y)
    np.testing.assert_array_equal(output(sparse, sp.csr_matrix(far[:10])), output(dense, far[:10]))
    with pytest.raises(ValueError, match="X must have rows near the origin"):
        estimator(gamma=5.0, cache_size=1e-4).fit(sp.csr_matrix(far), y)
