"""One kind of study: what `run` does with any of them, and that all of them are of that kind."""

import csv
import dataclasses
import importlib
import json
import pathlib
import re
import sys

import pytest

from thalweg._core.extras import new_figure
from thalweg.errors import MissingExtraError
from thalweg.lab import study
from thalweg.lab.jobs import Job
from thalweg.lab.report import Ratios, TextTable, group, mean, ratios, to_csv
from thalweg.lab.studies import OUTSIDE, STUDIES

pytest.importorskip("matplotlib")


@dataclasses.dataclass(frozen=True)
class Size:
    horizon: int


def drawing():
    figure = new_figure("a test", 3, 2)
    figure.subplots().plot([1, 2])
    return figure


@pytest.fixture
def toy():
    """A study of square numbers. It borrows a page."""
    square = "tests.lab.toy_jobs:square"
    return study.Study(
        name="toy",
        sizes={"usual": Size(4), "small": Size(2)},
        jobs=lambda size: [Job(f"run/{x}", square, {"x": x}) for x in range(size.horizon)],
        tables=lambda results: {"all": TextTable(["x"], [[str(row["square"])] for row in results.values()])},
        figures=lambda results: {"toy-picture": drawing()},
        remarks=lambda results: {"count": len(results)},
        template="toy.html",
        facts=lambda results: {"sum": sum(row["square"] for row in results.values())},
        warm_up=(Job("warm-up/0", square, {"x": 9}),),
    )


@pytest.fixture
def page_of_toy(monkeypatch):
    jinja2 = pytest.importorskip("jinja2")
    text = """{% extends "base.html" %}
{% block title %}Toys{% endblock %}
{% block lead %}Squares{% endblock %}
{% block main %}
{{ table(tables.all, "all") }}
{% call picture("toy-picture", "a line") %}{{ remarks.count }} of them{% endcall %}
{{ "<b>" }} {{ 0.5|ratio }} {{ terms({"x": "y"}) }} {{ left_out(["z"]) }}
{% endblock %}
"""
    loader = jinja2.FileSystemLoader

    def with_toy(folders):
        return jinja2.ChoiceLoader([jinja2.DictLoader({"toy.html": text}), loader(folders)])

    monkeypatch.setattr(jinja2, "FileSystemLoader", with_toy)


@pytest.mark.usefixtures("page_of_toy")
def test_run_writes_everything_and_the_page_says_it(toy, tmp_path):
    page = study.run(toy, tmp_path, engine="serial", progress=False)
    assert {path.name for path in tmp_path.iterdir()} == {
        "index.html", "runs.csv", "about.json", "runs", "toy-picture.png", "toy-picture.pdf",
    }  # fmt: skip
    facts = json.loads((tmp_path / "about.json").read_text())
    assert (facts["command"], facts["runs"], facts["size"], facts["sum"]) == (
        "thalweg study toy",
        4,
        {"horizon": 4},
        14,
    )
    assert (facts["small"], facts["full"]) == (False, False)
    with open(tmp_path / "runs.csv", newline="") as file:
        assert [row["square"] for row in csv.DictReader(file)] == ["0", "1", "4", "9"]
    text = page.read_text(encoding="utf-8")
    for told in ("<title>Toys", "<h1>Toys", "4 of them", "<td", "&lt;b&gt; 0.50", "<b>x</b>: y", "Left out: z"):
        assert told in text
    assert "A trial." not in text
    assert len(list((tmp_path / "runs").iterdir())) == 5  # the warm-up too


@pytest.mark.usefixtures("page_of_toy")
def test_a_small_one_says_so_and_is_not_warmed_up(toy, tmp_path):
    text = study.run(toy, tmp_path, "small", engine="serial", progress=False).read_text(encoding="utf-8")
    assert "Only 2 rounds were played" in text
    assert "thalweg study toy --small" in text
    assert len(list((tmp_path / "runs").iterdir())) == 2


@pytest.mark.usefixtures("page_of_toy")
def test_what_a_user_types_is_text_on_the_page(toy, tmp_path):
    page = study.run(toy, tmp_path, engine="serial", progress=False, command="thalweg --out '<script>&</script>'")
    text = page.read_text(encoding="utf-8")
    assert "&lt;script&gt;&amp;&lt;/script&gt;" in text
    assert "<script" not in text


def test_no_template_turns_escaping_off():
    places = pathlib.Path(study.__file__).parent, OUTSIDE
    templates = [page for place in places for page in place.rglob("*.html")]
    assert len(templates) == 1 + len(STUDIES)
    for template in templates:
        assert not re.search(r"\|\s*safe|autoescape|Markup", template.read_text(encoding="utf-8")), template


def test_what_is_not_available_is_left_out(toy, tmp_path, monkeypatch):
    monkeypatch.setattr(study, "_page", lambda *given: "")
    less = dataclasses.replace(toy, available=lambda size: Size(1), figures=lambda results: {})
    study.run(less, tmp_path, engine="serial", progress=False)
    assert json.loads((tmp_path / "about.json").read_text())["size"] == {"horizon": 1}


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_is_of_that_kind(name):
    package = STUDIES[name]
    found = importlib.import_module(f"{package.__name__}.study").STUDY
    assert found.name == name
    assert {"usual", "small"} <= set(found.sizes)
    assert ("full" in found.sizes) == hasattr(package, "FULL")
    assert found.sizes["small"].horizon < 5_000  # told to the reader of a trial
    for size in found.sizes.values():
        jobs = found.jobs(size)
        assert len({job.name for job in jobs}) == len(jobs)
        assert all(job.function.startswith(f"{package.__name__}.") for job in jobs)


def test_rows_as_csv():
    rows = [{"a": 1, "curve": [1, 2]}, {"a": None, "b": "x", "curve": []}]
    assert to_csv(rows) == b"a,b\n1,\n,x\n"
    assert to_csv(rows, ["b", "a"]) == b"b,a\n,1\nx,\n"


def test_csv_runs_nothing_in_a_spreadsheet():
    cells = {"=1+1": "'=1+1", "+x": "'+x", "-x": "'-x", "@sum(a)": "'@sum(a)", "\t=1": r"\t=1", "\x1b[2J": r"\x1b[2J"}
    cells |= {"-1.5": "-1.5", "+1e3": "+1e3", -2.5: "-2.5", -3: "-3", None: "", "a=b": "a=b"}
    rows = list(csv.reader(to_csv([{"=name": cell, "n": 1} for cell in cells]).decode().splitlines()))
    assert rows[0] == ["'=name", "n"]
    assert [row[0] for row in rows[1:]] == list(cells.values())


def test_groups_means_and_ratios():
    rows = [{"a": 1, "b": 2}, {"a": 1, "b": 3}, {"a": 2, "b": 2}]
    assert group(rows, "a") == {(1,): rows[:2], (2,): rows[2:]}
    assert mean(rows, "b") == pytest.approx(7 / 3)
    assert mean([{"a": {"b": 1}}, {"a": {"b": None}}], "a", "b") == 1
    assert ratios({"x": rows[:2]}, {"x": rows[2:]}, "b") == {"x": 1.25}
    times = Ratios(enumerate([0.5, 0.99, 1.0, 1.01, 1.5, 2.0]))
    assert (times.less, times.more, times.low, times.high) == (1, 2, 0, 5)
    assert Ratios(a=0.5, b=2.0).middle == pytest.approx(1)
    assert times.ends() == "from 0.50 times (0) to 2.0 times (5) as much"


def test_a_picture_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"a test needs matplotlib\. .*'thalweg\[lab\]'"):
        drawing()
