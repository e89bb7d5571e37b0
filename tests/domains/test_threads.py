"""One set shared by many threads: what each gets is what one alone would get, to the last bit."""

import copy
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import thalweg as tw
from tests.domains.test_domains import EXAMPLES
from thalweg.domains import Ball, Box, HalfSpace, Intersection, Polytope, Simplex

THREADS = 8


def draw(domain, count, seed=0):
    """Points from inside to far outside."""
    rng = np.random.default_rng(seed)
    size = domain.radius if np.isfinite(domain.radius) else 1.0
    fars = 10.0 ** rng.uniform(-1, 3, count)
    return [domain.center + size * far * rng.standard_normal(domain.shape) for far in fars]


def make_polytope(n=6):
    rng = np.random.default_rng(0)
    A = np.vstack([rng.standard_normal((4 * n, n)), np.eye(n), -np.eye(n)])
    return Polytope(A, rng.uniform(0.5, 1, 6 * n))


@pytest.fixture(autouse=True)
def quick_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


SHARED = {**EXAMPLES, "polytope, larger": make_polytope()}


@pytest.mark.parametrize("count", [16, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", SHARED)
def test_threads_give_what_one_gives(name, count):
    domain = SHARED[name]
    points = draw(domain, count)
    expected = [domain.project(y) for y in points]
    shared = copy.deepcopy(domain)  # as new: what is prepared at the first call is prepared by all at once
    gate = threading.Barrier(THREADS)

    def run(first):
        gate.wait()
        order = [*range(first, count), *range(first)]  # each thread begins elsewhere
        return {i: shared.project(points[i]) for i in order}

    with ThreadPoolExecutor(THREADS) as pool:
        for answers in pool.map(run, [k * count // THREADS for k in range(THREADS)]):
            for i, p in answers.items():
                np.testing.assert_array_equal(p, expected[i])


def test_threads_that_take_an_intersection_apart():
    """Far points along the axes, where members are merged at the first call."""
    c = 0.1 * np.arange(4.0)
    members = Ball(4), Box(c - 0.9, c + 0.9), HalfSpace([1.0, 2.0, 0.0, 1.0], 0.1)
    points = [far * np.eye(4)[j] for far in (1e4, 1e6, 1e10) for j in range(4)]
    expected = [Intersection(*members).project(y) for y in points]
    shared, gate = Intersection(*members), threading.Barrier(THREADS)

    def run(_):
        gate.wait()
        return [shared.project(y) for y in points]

    with ThreadPoolExecutor(THREADS) as pool:
        for answers in pool.map(run, range(THREADS)):
            np.testing.assert_array_equal(answers, expected)


@pytest.mark.parametrize("domain", [make_polytope(), Intersection(Simplex(6), Box(0.0, 0.4, shape=6))], ids=repr)
def test_a_learner_that_has_projected_is_copied_and_pickled(domain):
    problem = tw.problems.LinearLosses(np.random.default_rng(0).standard_normal((30, 6)))
    learner = tw.OGD(domain, 30, 9.0)
    tw.play(learner, problem)
    domain.project(np.full(6, 1e14))
    for twin in (copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))):
        np.testing.assert_array_equal(twin.decision, learner.decision)
        np.testing.assert_array_equal(twin.domain.project(np.full(6, 1e14)), domain.project(np.full(6, 1e14)))


@pytest.mark.parametrize("log_far", [0, 12, 16, 20, 100, 299])
def test_nothing_is_printed(log_far, capfd):
    domain, both = make_polytope(), Intersection(Ball(6), make_polytope())
    for y in np.random.default_rng(1).standard_normal((5, 6)) * 10.0**log_far:
        domain.project(y)
        both.project(y)
    assert capfd.readouterr() == ("", "")
