"""The catalog names every learner, builds what the name says, and helps with names it does not know."""

import inspect

import numpy as np
import pytest

import thalweg as tw
from thalweg.errors import InputError
from thalweg.lab import ALGORITHMS, DOMAINS, STREAMS, Stream, build, build_domain, draw
from thalweg.lab.streams import with_domain

ONE_PROJECTION = [name for name in ALGORITHMS if name.startswith("Efficient")]


@pytest.fixture(scope="module")
def short():
    return draw("piecewise", horizon=200)


@pytest.fixture(scope="module")
def absolute():
    """Losses that are not smooth."""
    base = draw("ball-piecewise", horizon=50, dim=3).problem
    problem, domain = tw.problems.AbsoluteRegression(base.features, base.labels), tw.domains.Ball(3)
    return Stream("absolute", domain, problem, problem.gradient_bound(domain), None, problem.loss_bound(domain))


def test_every_learner_and_every_domain_has_a_name():
    assert set(ALGORITHMS) >= set(tw.algorithms.__all__)
    classes = {name.lower() for name in tw.domains.__all__} - {"domain", "l1ball"} | {"l1"}
    assert {name.lower() for name in DOMAINS} == classes


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_name_builds_its_class(name, short):
    learner = build(name, short)
    assert type(learner) is getattr(tw, name.partition("-")[0])
    assert learner.domain is short.domain
    card = ALGORITHMS[name].card
    assert all(text and "\n" not in text for text in (card.about, card.bound, card.source))


@pytest.mark.parametrize("stream", STREAMS)
def test_every_algorithm_plays_every_stream(stream):
    if STREAMS[stream].real:
        pytest.importorskip("river")
        pytest.importorskip("bokeh_sampledata")
    data = draw(stream, horizon=60)
    for name in ALGORITHMS:
        run = tw.play(build(name, data), data.problem)
        assert run.rounds == 60
        assert run.clipped == 0
        if name in ONE_PROJECTION:
            gradients = 0 if ALGORITHMS[name].kind.values_only else 60
            assert (run.queries.projections, run.queries.gradients) == (60, gradients)


def test_variants_differ_in_what_they_say(short):
    def queries(name):
        return tw.play(build(name, short), short.problem).queries

    for shared, own in (("Ader", "Ader-own"), ("Sword-shared", "Sword"), ("CBCE-shared", "CBCE")):
        assert queries(shared).gradients == 200 < queries(own).gradients
    assert queries("SACS-compact").projections > queries("SACS").projections == 200
    T, G, X = 200, short.gradient_bound, short.domain
    worst = tw.algorithms.pools.worst_case_pool(T, G, X.radius, X.diameter)
    small = tw.algorithms.pools.small_loss_pool(T, short.smoothness, short.loss_bound, X.radius, X.diameter)
    np.testing.assert_array_equal(build("EfficientDynamic-worst-case", short).inner.step_sizes, worst)
    np.testing.assert_array_equal(build("EfficientDynamic", short).inner.step_sizes, small)


def test_the_eager_ones_start_experts_on_the_paper_s_stream():
    stream = draw("piecewise")
    for name in ("SACS", "EfficientAdaptive", "EfficientIntervalDynamic"):
        plain, eager = build(name, stream), build(f"{name}-eager", stream)
        for learner in (plain, eager):
            tw.play(learner, stream.problem)
        assert plain.marker_count == 1
        assert eager.marker_count > 3


def test_an_unknown_name_gets_near_ones(short):
    with pytest.raises(InputError, match=r"no algorithm 'Sord'. Did you mean .*Sword.*thalweg list algorithms"):
        build("Sord", short)
    with pytest.raises(InputError, match=r"no algorithm 'zzz'. 'thalweg list"):
        build("zzz", short)


OWN = """
import thalweg as tw
from thalweg.cards import Card

class Mine(tw.EfficientDynamic):
    card = Card("a learner with a card", "dynamic", "?", ("1", "1", "0"), "nobody", smooth=True)

class Plain(tw.SOGD):
    pass
"""


def test_a_class_of_ones_own_is_built_as_its_card_says(tmp_path, monkeypatch, absolute):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_with_card.py").write_text(OWN)
    stream = draw("piecewise", horizon=70)
    mine = build("own_with_card:Mine", stream)
    assert (mine.horizon, mine.gradient_bound) == (70, stream.gradient_bound)
    assert type(build("own_with_card:Plain", stream)).__name__ == "Plain"
    with pytest.raises(InputError, match="own_with_card:Mine needs losses that are smooth"):
        build("own_with_card:Mine", absolute)


def test_what_needs_smooth_losses_says_so(absolute):
    for name, recipe in ALGORITHMS.items():
        if recipe.card.smooth:
            with pytest.raises(InputError, match=rf"{name} needs .*smooth.*absolute.*without that: "):
                build(name, absolute)
        else:
            assert tw.play(build(name, absolute), absolute.problem).rounds == 50


def test_what_needs_losses_that_are_not_negative_says_so():
    problem, domain = tw.problems.LinearLosses(np.ones((5, 2))), tw.domains.Ball(2)
    stream = Stream("linear", domain, problem, 2.0, 1.0, 2.0)
    with pytest.raises(InputError, match="not free of negative values"):
        build("SACS", stream)
    worst = tw.algorithms.pools.worst_case_pool(5, 2.0, 1.0, 2.0)
    np.testing.assert_array_equal(build("EfficientDynamic", stream).inner.step_sizes, worst)
    assert tw.play(build("CBCE", stream), problem).rounds == 5


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ball", tw.domains.Ball(4, radius=3.0)),
        ("Ball: radius = 2.5", tw.domains.Ball(4, radius=2.5)),
        ("box:lower=0,upper=2", tw.domains.Box(0.0, 2.0, shape=4)),
        ("box:upper=2", tw.domains.Box(-1.0, 2.0, shape=4)),
        ("simplex:total=2", tw.domains.Simplex(4, total=2.0)),
        ("l1:radius=0.5", tw.domains.L1Ball(4, radius=0.5)),
        ("ellipsoid:diameter=2", tw.problems.paper_ellipsoid(4, 2.0)),
    ],
)
def test_domains_by_name(text, expected):
    found = build_domain(text, 4)
    assert type(found) is type(expected)
    np.testing.assert_array_equal(found.par, expected.par)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bal", "no domain 'bal'. Did you mean ball"),
        ("ball:size=3", "no option 'size'. It is written ball:radius=3"),
        ("ball:radius=big", "'radius' of the domain 'ball' must be a number. Got 'big'"),
        ("ball:radius", "must be a number. Got ''"),
        ("ball:radius=-1", "'radius' parameter of Ball must be"),
        ("ball:radius=nan", "'radius' parameter of Ball must be"),
        ("box:lower=2,upper=1", "Box"),
        ("polytope", "built in Python .*: ball, box, simplex, l1, ellipsoid"),
    ],
)
def test_bad_domains_are_refused(text, message):
    with pytest.raises(InputError, match=message):
        build_domain(text, 3)


def test_options_of_domains_are_those_of_their_makers():
    for shape in DOMAINS.values():
        if shape.make is not None:
            accepted = list(inspect.signature(shape.make).parameters)[1:]
            assert set(shape.options) <= set(accepted)


def test_algorithms_take_the_constants_of_another_domain(short):
    moved = with_domain(short, tw.domains.Simplex(8))
    assert tw.play(build("EfficientDynamic", moved), moved.problem).rounds == 200
