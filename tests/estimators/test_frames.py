"""Tables: arrays and data frames of several kinds give the same numbers; what is wrong is named by column and row."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from thalweg.errors import InputError
from thalweg.estimators._frames import column, table

CELLS = {"day": [1, 2, 3], "a": [1.0, 0.1, -3.0], "b": [True, False, True], "c": [1, 2, 3]}
KINDS = {
    "pandas": lambda cells: pd.DataFrame(cells, index=[10 + i for i in range(len(cells["day"]))]),
    "polars": pl.DataFrame,
}
numbers = np.array([[1.0, 1, 1], [0.1, 0, 2], [-3, 1, 3]])


@pytest.fixture(params=KINDS)
def make(request):
    return KINDS[request.param]


def test_numbers_and_names_come_out(make):
    t = table("Who", "experts", make(CELLS), time="day")
    assert t.names == ("a", "b", "c")
    assert np.array_equal(t.values, numbers)
    assert np.array_equal(table("Who", "experts", numbers).values, numbers)


def test_the_same_kind_comes_back_with_time_and_index(make):
    frame = make(CELLS)
    t = table("Who", "experts", frame, time="day")
    back = t.like(t.values * 2, ["x", "y", "z"])
    assert type(back) is type(frame)
    assert list(back.columns) == ["day", "x", "y", "z"]
    assert np.array_equal(back[["x", "y", "z"]].to_numpy(), 2 * numbers)
    if hasattr(frame, "index"):
        assert list(back.index) == [10, 11, 12]
    assert isinstance(table("Who", "experts", numbers).like(numbers, ["x"]), np.ndarray)


def test_one_column(make):
    frame = make(CELLS)
    assert column("Who", "y", frame["a"]).tolist() == CELLS["a"]
    assert column("Who", "y", frame[["a"]]).tolist() == CELLS["a"]
    with pytest.raises(InputError, match=r"y must have one column\. Got 4"):
        column("Who", "y", frame)


@pytest.mark.parametrize(
    ("cells", "time", "said"),
    [
        ({"a": ["x", "y", "z"]}, "day", r"Who: experts\['a'\] must hold numbers. Its type is String"),
        ({"a": [1.0, None, 2.0]}, "day", r"Who: experts\['a'\] has an empty cell in row 1"),
        ({"a": [1.0, 2.0, float("inf")]}, "day", r"Who: experts\['a'\] has inf in row 2"),
        ({"day": [1, 3, 2]}, "day", r"experts\['day'\] goes backwards in row 2, counted from 0: from 3 to 2"),
        ({"day": [1, None, 2]}, "day", r"experts\['day'\] has an empty cell in row 1"),
        ({}, "hour", "must be a column of experts. Got 'hour'"),
    ],
)
def test_what_is_wrong_is_named(make, cells, time, said):
    with pytest.raises(InputError, match=said):
        table("Who", "experts", make(CELLS | cells), time=time)


def test_empty_cells_may_be_allowed(make):
    t = table("Who", "experts", make(CELLS | {"a": [1.0, None, 2.0]}), empty=True)
    assert np.isnan(t.values[1, 1])


@pytest.mark.parametrize("rows", [[1.0, 2.0], [[[1.0]]], [[1], [1, 2]], "abc", [["a"]], None, [[1.0, np.nan]], [[1j]]])
def test_arrays_that_cannot_be_used(rows):
    with pytest.raises(InputError, match="Who: experts"):
        table("Who", "experts", rows)


def test_an_array_has_no_time():
    with pytest.raises(InputError, match="names a column, but experts is no data frame"):
        table("Who", "experts", numbers, time="day")
