"""Cuts through tables of all kinds of columns."""

from __future__ import annotations

import numpy as np
import pytest

from tausvm.cuts import column_values, cut_through, middle


def test_arrays_and_lists() -> None:
    X = [[0.0, 1.0, 5.0], [2.0, np.nan, 7.0], [4.0, 3.0, 6.0]]
    expected = [[9.0, 2.0, 6.0], [8.0, 2.0, 6.0]]
    for given in (X, np.array(X)):
        np.testing.assert_array_equal(cut_through(given, {0: np.array([9.0, 8.0])}), expected)


def test_frames_keep_their_columns_and_kinds() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "area": [1.0, np.nan, 3.0],
            "rooms": [2, 2, 5],
            "town": ["b", None, "b"],
            "empty": [np.nan] * 3,
            "day": pandas.to_datetime(["2024-01-05", None, "2024-03-01"]),
        }
    )
    cut = cut_through(frame, {2: np.array(["a", "b"], dtype=object)})
    assert list(cut.columns) == list(frame.columns)
    assert cut["town"].tolist() == ["a", "b"]
    assert cut["area"].tolist() == [2.0, 2.0]
    assert cut["rooms"].tolist() == [2.0, 2.0]
    assert cut["day"].tolist() == [pandas.Timestamp("2024-03-01")] * 2
    assert cut["empty"].isna().all()
    along = np.array(["2024-02-01", "2024-02-02"], dtype="datetime64[ns]")
    assert cut_through(frame, {4: along})["day"].tolist() == list(pandas.to_datetime(along))


def test_the_middle_of_text_is_the_most_frequent() -> None:
    values = np.array(["x", "y", "y", None, np.nan], dtype=object)
    assert middle(values) == "y"
    assert column_values(values[:, None], 0).dtype == object
