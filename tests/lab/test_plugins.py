"""Learners and domains of another package, which is made here: a module and the metadata that pip would write."""

import re
import sys
import warnings

import pytest

import thalweg as tw
from thalweg.cards import KINDS
from thalweg.errors import InputError, PluginWarning
from thalweg.lab import ALGORITHMS, DOMAINS, build, build_domain, draw, plugins

MODULE = '''
import thalweg as tw

class Stroll(tw.OGD):
    """Gradient descent by another name."""
    card = tw.cards.Card(about="a stroll", regret="static", bound="sqrt(T)", queries=("1", "1", "0"), source="nobody")

class OGD(tw.Learner):
    card = tw.cards.Card(about="not ours", regret="static", bound="T", queries=("1", "1", "0"), source="nobody")

def cone(dim, height=2.0):
    """A ball, in truth."""
    return tw.domains.Ball(dim, radius=height)

def nothing(dim):
    return None

def shy(dim, centre="middle"):
    return tw.domains.Ball(dim)
'''
POINTS = """
[thalweg.learners]
Stroll = stranger:Stroll
OGD = stranger:OGD
Function = stranger:cone
Gone = stranger_that_is_not_there:Learner
[thalweg.domains]
cone = stranger:cone
nothing = stranger:nothing
shy = stranger:shy
ball = stranger:cone
"""


@pytest.fixture
def stranger(tmp_path, monkeypatch):
    """An installed package with entry points; everything is forgotten afterwards."""
    (tmp_path / "stranger.py").write_text(MODULE)
    info = tmp_path / "stranger-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    before = dict(KINDS)
    for kept in (plugins.load_learners, plugins.domains):
        kept.cache_clear()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        len(ALGORITHMS), len(DOMAINS)
    yield [str(one.message) for one in said if issubclass(one.category, PluginWarning)]
    KINDS.clear()
    KINDS.update(before)
    sys.modules.pop("stranger", None)
    monkeypatch.undo()
    for kept in (plugins.load_learners, plugins.domains):
        kept.cache_clear()


def test_they_are_listed_and_built(stranger, call, works):
    stream = draw("ball-piecewise", horizon=50, dim=3)
    learner = build("stroll", stream)
    assert type(learner).__name__ == "Stroll"
    assert tw.play(learner, stream.problem).rounds == 50
    assert build_domain("cone:height=3", 4).radius == 3.0
    assert build_domain("cone", 4).radius == 2.0
    listed = call("list")[1]
    assert "a stroll" in listed
    assert re.search(r"^cone +cone:height=2 +A ball, in truth$", listed, re.M)
    works("compare", "Stroll", "OGD", "--on", "gradual", "--horizon", 40, "--seeds", 1)


def test_entry_points_that_cannot_be_used_are_left_out_and_named(stranger):
    told = "\n".join(stranger)
    assert len(stranger) == 4
    assert (
        "Function = stranger:cone of the package stranger in thalweg.learners is left out: it must be a class" in told
    )
    assert "importing it raised ModuleNotFoundError: No module named 'stranger_that_is_not_there'" in told
    assert "has a learner OGD already" in told
    assert (
        "shy = stranger:shy of the package stranger in thalweg.domains is left out: it must take the dimension" in told
    )
    assert KINDS["OGD"] is tw.OGD
    assert build_domain("ball", 3).radius == 3.0  # ours
    assert "shy" not in DOMAINS
    with pytest.raises(InputError, match="'nothing' must return a thalweg Domain"):
        build_domain("nothing", 3)
