"""An expert that is defined here and nowhere else works wherever an expert can stand."""

import copy
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose

import thalweg as tw
from tests.twins import adaptive
from tests.twins.dynamic import Squared, ball, softmax
from tests.worlds import assert_plays, built, stepped
from thalweg._core.rules import inside
from thalweg._core.state import Plan, field
from thalweg._core.types import Floats
from thalweg._kernels.jit import implement, inner
from thalweg._kernels.parts import after_projection, member_decision, move, point_count, projected_points, start
from thalweg.experts import Expert, Pool
from thalweg.metas import AdaptMLProd, Hedge


class LazyState(NamedTuple):
    """Descents that project the sum of all gradients: y_{t+1} = Pi(c - eta sum_{s<=t} h_s)."""

    points: Floats = field("K N d", inside("domain"))
    sums: Floats = field("K N d")


class LazySettings(NamedTuple):
    steps: np.ndarray  # (K, N)
    ball: np.ndarray  # [R, c]


@implement(start, LazyState)
def _start(e, c, k, i, point):
    e.points[k, i, :] = point
    e.sums[k, i, :] = 0.0


@inner
def _restored(e, c, k, i):
    square = 0.0
    for j in range(e.sums.shape[2]):
        square += e.sums[k, i, j] ** 2
    keep = min(1.0, c.ball[0] / (c.steps[k, i] * np.sqrt(square))) if square > 0.0 else 1.0
    for j in range(e.sums.shape[2]):
        e.points[k, i, j] = c.ball[1 + j] - keep * c.steps[k, i] * e.sums[k, i, j]


@implement(move, LazyState)
def _move(e, c, k, n, h, scores):
    for i in range(n):
        scores[k, i] = 0.0
        for j in range(h.shape[0]):
            scores[k, i] += h[j] * e.points[k, i, j]
            e.sums[k, i, j] += h[j]
        _restored(e, c, k, i)


@implement(after_projection, LazyState)
def _settle(e, c, k, n):
    return


@implement(member_decision, LazyState)
def _place(e, k, i):
    return e.points[k, i]


@implement(projected_points, LazyState)
def _spots(e):
    return e.points


@implement(point_count, LazyState)
def _leaves(e, c, k):
    return 1


class Lazy(Expert):
    def __init__(self, domain, step):
        self.domain, self.step = domain, step

    @classmethod
    def plan(cls, experts):
        steps, domain = cls.table(experts, "step"), experts[0][0].domain
        sizes = {"K": steps.shape[0], "N": steps.shape[1], "d": domain.dim}
        return Plan(LazyState, LazySettings(steps, domain.par), sizes, facts={"domain": domain})


class Twin:
    def __init__(self, center, radius, step):
        self.center, self.project, self.step = center, ball(center, radius), step
        self.total, self.point = np.zeros(len(center)), np.array(center)

    def update(self, h):
        self.total = self.total + h
        self.point = self.project(self.center - self.step * self.total)


T, RADIUS = 40, 1.5
CENTER = np.array([0.5, -1.0])
BALL = tw.domains.Ball(2, radius=RADIUS, center=CENTER)
STEPS = (0.05, 0.2, 0.8)


def losses():
    rng = np.random.default_rng(3)
    return [Squared(rng.standard_normal(2), 2 * rng.standard_normal() + 3) for _ in range(T)]


def of_pool():
    """Lazy descents under Hedge with rate 0.1, as numbers."""
    members, A, decisions = [Twin(CENTER, RADIUS, step) for step in STEPS], np.zeros(3), []
    for f in losses():
        y = softmax(-0.1 * A) @ np.array([member.point for member in members])
        decisions.append(y)
        h = f.gradient(y)
        A = A + [h @ member.point for member in members]
        for member in members:
            member.update(h)
    return np.array(decisions)


def of_cover():
    return adaptive.efficient_adaptive(
        losses(), ball(CENTER, RADIUS), CENTER, RADIUS, gradient_bound=40.0, threshold=lambda m: 2.0,
        make_expert=lambda start: Twin(CENTER, RADIUS, 0.2),
    ).decisions  # fmt: skip


def of_one():
    one, decisions = Twin(CENTER, RADIUS, 0.2), []
    for f in losses():
        decisions.append(one.point)
        one.update(f.gradient(one.point))
    return np.array(decisions)


PLACES = {
    "alone": (lambda: tw.Alone(Lazy(BALL, 0.2)), of_one),
    "pool": (lambda: tw.Alone(Pool([Lazy(BALL, step) for step in STEPS], meta=Hedge(rate=0.1))), of_pool),
    "cover": (
        lambda: tw.Cover(BALL, Lazy(BALL, 0.2), meta=AdaptMLProd(2 * 40.0 * RADIUS), threshold=lambda m: 2.0),
        of_cover,
    ),
}


# What a test's own class is part of is not kept on disk. CONTRIBUTING.md has a cover of such experts, too.
@pytest.mark.parametrize("place", ["alone", "pool", pytest.param("cover", marks=pytest.mark.slow)])
def test_it_plays_what_its_twin_plays(place):
    make, twin = PLACES[place]
    rows, expected, learner = losses(), twin(), make()
    assert_plays(make, rows, expected)
    stepped(learner, rows[:20])
    later = copy.deepcopy(learner)
    assert np.array_equal(stepped(later, rows[20:]), stepped(learner, rows[20:]))
    on_sphere = np.abs(np.linalg.norm(expected - CENTER, axis=1) - RADIUS) < 1e-9
    assert place == "cover" or 0 < on_sphere.sum() < T


def test_in_plain_python_it_is_the_same():
    state, settings = built(Lazy.plan([[Lazy(BALL, 0.2)]]))
    start(state, settings, 0, 0, CENTER)
    for f, x in zip(losses(), of_one(), strict=True):
        assert_allclose(member_decision(state, 0, 0), x, rtol=0, atol=1e-12)
        move(state, settings, 0, 1, f.gradient(np.array(member_decision(state, 0, 0))), np.zeros((1, 1)))
