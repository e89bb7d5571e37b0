"""Streams: what they promise holds, a seed gives the same data again, and bad names get a clear answer."""

import sys

import numpy as np
import pytest

import thalweg as tw
from thalweg.errors import InputError, MissingExtraError
from thalweg.lab import STREAMS, draw
from thalweg.lab.streams import planted, with_domain

SYNTHETIC = [name for name, source in STREAMS.items() if not source.real]
REAL = [name for name, source in STREAMS.items() if source.real]
PACKAGES = {"polls": "river", "glucose": "bokeh_sampledata", "sea": "bokeh_sampledata", "water": "river"}


def drawn(name, **options):
    if name in PACKAGES:
        pytest.importorskip(PACKAGES[name], reason=f"its data comes with {PACKAGES[name]}")
    return draw(name, **options)


def test_the_names_are_those_that_are_promised():
    assert SYNTHETIC == ["piecewise", "gradual", "fast-walk", "ball-piecewise", "classification"]
    assert list(PACKAGES) == REAL


@pytest.mark.parametrize("name", STREAMS)
def test_the_constants_hold_in_every_round(name):
    stream = drawn(name, horizon=3000)
    problem, domain = stream.problem, stream.domain
    assert stream.name == name
    assert problem.smoothness <= stream.smoothness
    directions = np.random.default_rng(0).standard_normal((30, domain.dim))
    points = [domain.project(domain.center + scale * d) for d in directions for scale in (0.1, 100.0)]
    norms = np.linalg.norm(problem.features, axis=1)
    for x in points:
        z, y = problem.features @ x, problem.labels
        slopes = z - y if problem.loss == "squared" else 1 / (1 + np.exp(y * z))
        assert (np.abs(slopes) * norms).max() <= stream.gradient_bound
        assert problem.losses_of(x).max() <= stream.loss_bound


@pytest.mark.parametrize("name", SYNTHETIC)
def test_the_data_depends_on_the_seed_and_the_constants_do_not(name):
    first, again, other = (draw(name, seed, horizon=600) for seed in (0, 0, 1))
    assert not np.array_equal(first.problem.features, other.problem.features)
    for key in ("features", "labels", "comparators"):
        np.testing.assert_array_equal(getattr(first.problem, key), getattr(again.problem, key))
    for key in ("gradient_bound", "smoothness", "loss_bound", "changes"):
        assert getattr(first, key) == getattr(other, key)


@pytest.mark.parametrize(
    ("name", "T", "jumps"), [("piecewise", 1000, 24), ("piecewise", 7, 6), ("ball-piecewise", 2600, 4)]
)
def test_changes_are_where_the_model_jumps(name, T, jumps):
    stream = draw(name, horizon=T)
    moved = (np.diff(stream.problem.comparators, axis=0) != 0).any(axis=1)
    assert tuple(1 + np.flatnonzero(moved)) == stream.changes
    assert len(stream.changes) == jumps


def test_the_paper_s_streams_have_the_paper_s_size():
    for name in ("piecewise", "gradual"):
        stream = draw(name)
        assert (len(stream.problem), stream.domain.dim, stream.domain.diameter) == (20_000, 8, 6.0)
    steps = np.linalg.norm(np.diff(draw("gradual", horizon=500).problem.comparators, axis=0), axis=1)
    np.testing.assert_allclose(steps.max(), 6 / 500, rtol=1e-9)
    steps = np.linalg.norm(np.diff(draw("fast-walk", horizon=400).problem.comparators, axis=0), axis=1)
    np.testing.assert_allclose(steps.max(), 6 / 20, rtol=1e-9)


def test_classes_follow_the_planted_weights():
    problem = draw("classification", horizon=5000).problem
    assert set(problem.labels) == {-1.0, 1.0}
    planted_loss = problem.losses_of(problem.comparators)
    margins = np.einsum("td,td->t", problem.features, problem.comparators)
    p = 1 / (1 + np.exp(-margins))
    entropy = -(p * np.log(p) + (1 - p) * np.log1p(-p))  # what the true chances pay on average
    assert abs(planted_loss.mean() - entropy.mean()) < 5 * planted_loss.std() / np.sqrt(5000)
    assert planted_loss.mean() < 0.9 * np.log(2)


def test_dim_and_horizon():
    stream = draw("gradual", horizon=50, dim=3)
    assert stream.problem.features.shape == (50, 3)
    assert draw("ball-piecewise", horizon=10).domain.dim == 20


@pytest.mark.parametrize("name", REAL)
def test_real_data_is_cut_and_never_changes(name):
    whole, part, other = drawn(name), drawn(name, horizon=40), drawn(name, seed=9, horizon=10**9)
    np.testing.assert_array_equal(whole.problem.features[:40], part.problem.features)
    np.testing.assert_array_equal(whole.problem.labels, other.problem.labels)
    assert part.gradient_bound == whole.gradient_bound
    with pytest.raises(InputError, match="dimension is given"):
        draw(name, dim=3)


def test_bad_arguments_are_refused():
    with pytest.raises(InputError, match=r"no stream 'piecwise'. Did you mean 'piecewise'\? .*glucose"):
        draw("piecwise")
    for name, values in {"seed": (-1, 1.5, True, "x"), "horizon": (0, 2.5, -3), "dim": (0,)}.items():
        for value in values:
            with pytest.raises(InputError, match=f"'{name}'"):
                draw("gradual", **{"horizon": 10, name: value})


@pytest.mark.parametrize("name", REAL)
def test_a_missing_package_is_named(name, monkeypatch):
    package = PACKAGES[name]
    for module in [m for m in sys.modules if m.partition(".")[0] == package] + [package]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"needs {package}\. .*pip install 'thalweg\[data\]'"):
        draw(name)


def test_another_domain_gets_constants_of_its_own():
    stream = draw("polls" if "river" in sys.modules else "piecewise", horizon=100)
    ball = tw.domains.Ball(stream.domain.dim, radius=0.5)
    moved = with_domain(stream, ball)
    assert moved.domain is ball
    assert moved.gradient_bound == stream.problem.gradient_bound(ball)
    assert moved.loss_bound == stream.problem.loss_bound(ball)
    assert moved.problem.comparators is None
    np.testing.assert_array_equal(moved.problem.features, stream.problem.features)


def test_planted_walks_without_stages():
    stream = planted("mine", tw.domains.Ball(2), 30, 0, step=0.0)
    assert stream.changes == ()
    assert (stream.problem.comparators == stream.problem.comparators[0]).all()
