"""Kernels by address: a set and a loss of one's own are played by the same compiled loop as built-in ones."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import thalweg as tw
from thalweg._kernels import projections
from thalweg._kernels.jit import kernel
from thalweg._kernels.pointers import call
from thalweg.losses import KINDS, PredictionLoss
from thalweg.losses._phi import of_kernels


@kernel
def value(z, b, _):
    return (z - b) ** 4 / 4


@kernel
def slope(z, b, _):
    return (z - b) ** 3


@kernel
def no_prox(z, b, par, width):
    return np.nan


class Quartic(PredictionLoss):
    """(z - b)^4 / 4."""

    name = "quartic"
    phi = of_kernels(value, slope, no_prox, no_prox)
    curvature = None


KINDS.pop("quartic")  # only this file knows it


@pytest.fixture
def _quartic(monkeypatch):
    monkeypatch.setitem(KINDS, "quartic", Quartic)


@kernel
def onto_wedge(par, y, out, work):
    """0 <= y_j <= par[0]."""
    for j in range(y.shape[0]):
        out[j] = min(max(y[j], 0.0), par[0])


class Cube(tw.domains.Domain):
    """[0, a]^d."""

    onto = projections.pointer(onto_wedge)

    def __init__(self, d, a):
        self.par = np.array([a])
        self._state_facts((d,), np.full(d, a / 2), a * np.sqrt(d) / 2, a * np.sqrt(d))


@pytest.mark.usefixtures("_quartic")
def test_a_loss_and_a_set_of_ones_own_are_played_compiled(monkeypatch):
    rng = np.random.default_rng(0)
    problem = tw.problems.LinearModel(rng.uniform(size=(60, 3)), rng.uniform(size=60), loss="quartic")
    X, box = Cube(3, 0.8), tw.domains.Box(np.zeros(3), np.full(3, 0.8))
    learner = tw.EfficientDynamic(box, 60, 30.0)
    stepped = [learner.step(f) for f in problem]
    fresh = tw.EfficientDynamic(X, 60, 30.0)
    monkeypatch.setattr(tw.EfficientDynamic, "step", lambda *_: pytest.fail("not compiled"))
    run = tw.play(fresh, problem)
    np.testing.assert_allclose(run.losses, stepped, rtol=1e-12)
    assert run.queries.projections == 60
    assert not fresh.machine.ahead  # a kernel of one's own may raise: it does so when the decision is asked for


def test_pointers_stay_the_same_when_copied_or_pickled():
    for pointer in (projections.PYTHON, projections.SIMPLEX, tw.losses.Huber.phi.value, Cube.onto):
        assert pickle.loads(pickle.dumps(pointer)) is pointer
        assert copy.deepcopy(pointer) is pointer
    assert b"address" not in pickle.dumps(projections.SIMPLEX)
    assert "simplex" in repr(projections.SIMPLEX)


def test_a_pickled_learner_projects_in_another_process(tmp_path):
    """Its settings name the projection: an address of this process would be a crash there."""
    learner = tw.Sword(tw.domains.Simplex(3), 10, 1.0, 1.0)
    learner.update([0.5, 0.0, -0.5])
    (tmp_path / "learner").write_bytes(pickle.dumps(learner))
    code = (
        "import pickle, sys; learner = pickle.load(open(sys.argv[1], 'rb')); learner.update([0.5, 0.1, -0.5]);"
        "print(learner.decision.tolist())"
    )
    out = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "learner"], capture_output=True, text=True, check=True
    ).stdout
    learner.update([0.5, 0.1, -0.5])
    np.testing.assert_allclose(eval(out), learner.decision, rtol=1e-13)


def test_values_come_back():
    @kernel
    def twice(function, z):
        return call(function, z, 1.0, 0.0) * 2.0

    assert twice(tw.losses.Squared.phi.slope, 3.0) == 4.0
    assert twice(Quartic.phi.value, 3.0) == 8.0
