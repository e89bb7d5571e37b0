"""Tables: what is written is what is played, and what cannot be played is refused with its place named."""

import io

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import thalweg as tw
from thalweg.errors import InputError
from thalweg.lab import build, read_table

pl = pytest.importorskip("polars", reason="tables are read by polars: pip install 'thalweg[lab]'")

NUMBERS = st.floats(-1e100, 1e100, allow_subnormal=False)


@pytest.fixture
def write(tmp_path):
    def written(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return written


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


@given(rows=st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=2, max_size=20))
def test_numbers_survive_exactly(folder, rows):
    table = np.array(rows)
    frame = pl.DataFrame(table, schema=["a", "b", "y"], orient="row")
    frame.write_parquet(folder / "data.parquet")
    lines = ["a,b,y", *(",".join(repr(float(x)) for x in row) for row in table)]
    (folder / "data.csv").write_text("\n".join(lines) + "\n")
    for name in ("data.csv", "data.parquet"):
        read = read_table(folder / name, "y", scale=False)
        assert read.features == ("a", "b", "intercept")
        np.testing.assert_array_equal(read.stream.problem.features, np.c_[table[:, :2], np.ones(len(table))])
        np.testing.assert_array_equal(read.stream.problem.labels, table[:, 2])


@given(rows=st.lists(st.tuples(NUMBERS, NUMBERS), min_size=2, max_size=20))
def test_scaled_numbers_are_at_most_one_and_scale_back(folder, rows):
    table = np.array(rows)
    pl.DataFrame(table, schema=["a", "y"], orient="row").write_parquet(folder / "scaled.parquet")
    read = read_table(folder / "scaled.parquet", "y", intercept=not table[:, 0].any())
    problem = read.stream.problem
    assert np.abs(problem.features).max() <= 1
    assert np.abs(problem.labels).max() <= 1
    for scaled, key, numbers in ((problem.features[:, 0], "a", table[:, 0]), (problem.labels, "y", table[:, 1])):
        scale = read.scales[key]
        np.testing.assert_allclose(scaled * scale, numbers, rtol=1e-15, atol=1e-15 * scale)


@given(content=st.binary(max_size=60) | st.text("ay,;\t\n\r \"'.-+e019nNif", max_size=60).map(str.encode))
def test_whatever_is_in_a_file_only_an_input_error_comes_out(folder, content):
    path = folder / "any.csv"
    path.write_bytes(b"a,y\n1,2\n" + content)
    try:
        problem = read_table(path, "y").stream.problem
    except InputError as error:
        problem, message = None, str(error)
    if problem is None:
        assert "\n" not in message
    else:
        assert len(problem) >= 2
        assert np.isfinite(problem.features).all()


@given(cut=st.integers(0, 10**6), at=st.integers(0, 10**6), byte=st.integers(0, 255))
def test_a_damaged_parquet_file_is_refused_or_read(folder, cut, at, byte):
    packed = io.BytesIO()
    pl.DataFrame({"a": [1.0, 2.0, 3.0], "y": [1, 2, 3]}).write_parquet(packed)
    content = bytearray(packed.getvalue())
    content[at % len(content)] = byte
    path = folder / "damaged.parquet"
    path.write_bytes(content[: cut % (len(content) + 1)])
    message = ""
    try:
        read_table(path, "y")
    except InputError as error:
        message = str(error)
    assert "\n" not in message


def test_a_table_is_played_with_its_constants(write):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    y = x @ [2.0, -1.0] + 5
    path = write("a,b,y\n" + "".join(f"{a},{b},{c}\n" for (a, b), c in zip(x, y, strict=True)))
    stream = read_table(path, "y").stream
    assert (stream.name, stream.domain.dim, stream.domain.radius) == ("data.csv", 3, 3.0)
    assert stream.gradient_bound == stream.problem.gradient_bound(stream.domain)
    assert stream.loss_bound == stream.problem.loss_bound(stream.domain)
    run = tw.play(build("SOGD", stream), stream.problem)
    assert run.losses[-50:].mean() < run.losses[:50].mean() / 10


def test_columns_are_chosen(write):
    path = write("day,a,b,y\nmon,1,2,3\ntue,4,5,6\n")
    table = read_table(path, "y", scale=False)
    assert (table.features, table.left_out) == (("a", "b", "intercept"), ("day",))
    table = read_table(path, "y", features=["b"], intercept=False, scale=False)
    assert table.features == ("b",)
    np.testing.assert_array_equal(table.stream.problem.features, [[2.0], [5.0]])
    table = read_table(path, "y", features=["b", "a"], scale=False)
    np.testing.assert_array_equal(table.stream.problem.features, [[2.0, 1.0, 1.0], [5.0, 4.0, 1.0]])


@pytest.mark.parametrize(
    "content",
    [
        "a,y\n1,2\n3,4\n",
        "a;y\n1;2\n3;4\n",
        "a\ty\r\n1\t2\r\n3\t4\r\n",
        "\ufeffa,y\n1,2\n3,4",
        ' a , y \n 1,"2"\n3 , 4\n\n\n',
    ],
)
def test_the_usual_ways_to_write_a_csv(write, content):
    stream = read_table(write(content), "y", scale=False, intercept=False).stream
    np.testing.assert_array_equal(stream.problem.features, [[1.0], [3.0]])
    np.testing.assert_array_equal(stream.problem.labels, [2.0, 4.0])


def test_parquet_types(folder):
    frame = pl.DataFrame(
        {
            "flag": [True, False],
            "whole": pl.Series([1, 2], dtype=pl.UInt8),
            "text": ["1.5", " 2.5"],
            "when": pl.Series(["2024-01-01", "2024-01-02"]).str.to_date(),
            "y": pl.Series([1.0, 2.0], dtype=pl.Float32),
        }
    )
    frame.write_parquet(folder / "types.parquet")
    table = read_table(folder / "types.parquet", "y", intercept=False, scale=False)
    assert (table.features, table.left_out) == (("flag", "whole", "text"), ("when",))
    np.testing.assert_array_equal(table.stream.problem.features, [[1.0, 1.0, 1.5], [0.0, 2.0, 2.5]])


def test_classes(write):
    for content in ("a,y\n1,0\n2,1\n", "a,y\n1,-1\n2,1\n"):
        table = read_table(write(content), "y", loss="logistic")
        np.testing.assert_array_equal(table.stream.problem.labels, [-1.0, 1.0])
        assert table.scales == {"a": 2.0, "y": 1.0}
    with pytest.raises(InputError, match=r"column 'y', row 2: the logistic loss needs classes .* Got 3"):
        read_table(write("a,y\n1,1\n2,3\n"), "y", loss="logistic")
    assert read_table(write("a,y\n1,3\n2,5\n"), "y", loss="absolute").stream.smoothness is None


def test_rows_takes_the_first_rows_and_looks_at_no_others(write):
    path = write("a,y\n1,2\n3,4\nx,900\n")
    table = read_table(path, "y", rows=2)
    assert len(table.stream.problem) == 2
    assert table.scales == {"a": 3.0, "y": 4.0}
    assert table.remarks == ("the first 2 of 3 rows; 1 were left out",)
    assert read_table(write("a,y\n1,2\n3,4\n5,6\n"), "y", rows=3).remarks == ()


def test_wide_tables_and_long_cells_make_short_messages(write):
    names = [f"c{k}" for k in range(3000)]
    path = write(",".join(names) + "\n" + ",".join("1" * 3000) + "\n" + ",".join("2" * 3000) + "\n")
    for call in (
        lambda: read_table(path, None),
        lambda: read_table(path, "y"),
        lambda: read_table(path, "c1", time="y"),
    ):
        with pytest.raises(InputError, match=r"c0, c1, .*\.\.\. \(3000 in all\)") as caught:
            call()
        assert len(str(caught.value)) < 1000
    for cell in ("1" * 200_000, "x" * 200_000):
        with pytest.raises(InputError, match="column 'a', row 1") as caught:
            read_table(write(f"a,y\n{cell},2\n3,4\n"), "y", features=["a"])
        assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        (" \n\n", "is empty"),
        ("a,y\n", "has 0 row.* At least 2"),
        ("a,y\n1,2\n", "has 1 row.* At least 2"),
        ("a,y\n1,2\n3,4,5\n", r"row 2: 3 value\(s\), but the header names 2 column"),
        ("a,b,y\n1,2,3\n4,5\n6,7,8\n", r"row 2: 2 value\(s\), but the header names 3 column"),
        ("a,z\n1,2\n3,4\n", "no column 'y' for a target. Its columns are a, z"),
        ("a,y,y\n1,2,3\n3,4,5\n", "two columns called 'y'"),
        ("a,y\n1,2\nx,4\n", "column 'a', row 2: 'x' is no number"),
        ("a,y\n1,2\n3,many\n", "column 'y', row 2: 'many' is no number"),
        ("a,y\n1,2\nNaN,4\n", "column 'a', row 2: NaN is not finite"),
        ("a,y\n1,-inf\n3,4\n", "column 'y', row 1: -inf is not finite"),
        ("a,y\n1,1e999\n3,4\n", "column 'y', row 1: 1e999 is not finite"),
        ("a,y\n,2\n3,4\n", "column 'a', row 1: the cell is empty"),
        ("a,y\n1,2\n\n3,4\n", "row 2: the cell is empty"),
        ('a,y\n1,"2\n3,4\n', "a quotation mark is never closed|At least 2"),
        (b"a,y\n1,\xff\n3,4\n", "no text in UTF-8: see line 2"),
    ],
)
def test_a_bad_csv_is_refused(write, content, message):
    path = write(content)
    with pytest.raises(InputError, match=message) as caught:
        read_table(path, "y")
    assert str(path) in str(caught.value)


def test_a_reader_that_panics_is_no_panic(folder, monkeypatch):
    def panic(*arguments, **options):
        raise pl.exceptions.PanicException("range end out of range\nand more")

    (folder / "data.parquet").write_bytes(b"PAR1")
    monkeypatch.setattr(pl, "read_parquet", panic)
    with pytest.raises(InputError, match=r"no Parquet file that can be read: range end out of range$"):
        read_table(folder / "data.parquet", "y")


def test_bad_arguments_are_refused(write, tmp_path):
    path = write("a,y\n0,2\n0,4\n")
    pl.DataFrame({"a": [1.0, None], "y": [1, 2]}).write_parquet(tmp_path / "null.parquet")
    for source, target, options, message in (
        (tmp_path / "none.csv", "y", {}, "There is no file"),
        (tmp_path / "data.xlsx", "y", {}, r"ending that is not known. Known are .csv"),
        (path, None, {}, r"which column is the target. Its columns are a, y"),
        (path, "y", {"features": ["a", "y"]}, "'y' is given twice: as the target and as a feature"),
        (path, "y", {"features": ["a", "a"]}, "feature 'a' is given twice"),
        (path, "y", {"features": ["q"]}, r"no column 'q' for a feature. Its columns are a, y"),
        (path, "y", {"intercept": False}, "no feature that is not 0"),
        (path, "y", {"loss": "cubic"}, "'loss'"),
        (path, "y", {"domain": "ball:size=1"}, "no option"),
        (write(b"", "empty.parquet"), "y", {}, "is empty"),
        (tmp_path / "null.parquet", "y", {}, "column 'a', row 2: the cell is empty"),
        (write(b"what is this", "bad.parquet"), "y", {}, "no Parquet file"),
    ):
        with pytest.raises(InputError, match=message):
            read_table(source, target, **options)
