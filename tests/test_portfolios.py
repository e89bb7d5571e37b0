"""The example of portfolios: its pieces are right, and it runs."""

import pathlib
import runpy
import subprocess
import sys

import numpy as np
import pytest

import thalweg as tw

FILE = pathlib.Path(__file__).parents[1] / "examples" / "portfolios.py"


@pytest.fixture(scope="module")
def example():
    return runpy.run_path(str(FILE))


def test_nearest_point_in_a_norm(example):
    """<A (u - y), v - u> >= 0 for every corner v of the simplex."""
    rng = np.random.default_rng(0)
    for n in (2, 5, 12):
        for _ in range(30):
            B = rng.standard_normal((n, n))
            A, y = B @ B.T + 0.1 * np.eye(n), rng.standard_normal(n)
            u = example["nearest"](A, y, rng.dirichlet(np.ones(n)))
            slope = A @ (u - y)
            assert u.min() >= 0
            assert u.sum() == pytest.approx(1)
            assert slope.min() - slope @ u >= -1e-8 * np.abs(A @ y).max()


def test_online_newton_sees_the_whole_gradient(example):
    """Its rounds are those of the paper's equations, written down once more; and it is a learner as any other."""
    returns = example["made_up"](60)
    simplex = tw.domains.Simplex(5)
    run = tw.play(example["OnlineNewton"](simplex), tw.problems.Portfolio(returns), decisions=True)
    A, b, x = np.eye(5), np.zeros(5), np.full(5, 0.2)
    for t, r in enumerate(returns):
        assert np.allclose(run.decisions[t], x, atol=1e-9)
        g = r / (x @ r)
        A += np.outer(g, g)
        b += 2 * g
        x = example["nearest"](A, np.linalg.solve(A, b) / 8, x)


def test_what_the_rules_make(example):
    returns = example["made_up"](300)
    wealth = example["rules"](returns)
    uniform, newton, tracker, half = wealth.values()
    assert uniform[-1] == pytest.approx(np.prod(returns.mean(axis=1)))
    assert np.allclose(half, (uniform + newton) / 2)
    assert all((path > 0).all() and path.shape == (300,) for path in (newton, tracker))
    best, worst = np.prod(returns.max(axis=1)), np.prod(returns.min(axis=1))
    assert all(worst < path[-1] < best for path in wealth.values())


def test_it_runs():
    found = subprocess.run([sys.executable, str(FILE), "--made-up"], capture_output=True, text=True, check=True)
    assert found.stdout.startswith("| wealth | days, assets | uniform rebalancing")
    assert "| made up | 600, 5 |" in found.stdout
