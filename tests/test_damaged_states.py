"""Damaged states are refused with a StateError and nothing changes, or the learner works: `tests/damage.py` has how."""

import os
import subprocess
import sys

import numpy as np
import pytest

import thalweg as tw
from tests.damage import KINDS, WORLDS, campaign, same
from thalweg.errors import InputError, ProjectionError, StateError
from thalweg.pca import AdaptivePCA, EfficientPCA

pytestmark = pytest.mark.filterwarnings("ignore::thalweg.errors.HorizonWarning")

SOME = (
    "AFLH-shared",
    "AOA",
    "CBCE-shared",
    "CutkoskyAdaptive ball",
    "Delayed Tracker",
    "Delayed OGD custom",
    "Descent in a pool, CoinBetting",
    "EfficientAdaptive many",
    "EfficientCutkosky",
    "EfficientDelayed",
    "EfficientDynamic",
    "EfficientOptimistic",
    "OneProjection twice",
    "PCA: AdaptivePCA",
    "PCA: DescentPCA",
    "PCA: EfficientPCA",
    "PCA: OjaPCA",
    "PCA: YuanLamperskiPCA",
    "SACS many",
    "SAOL",
    "SOGD simplex",
    "Scream custom",
    "SwordPP",
    "Tracker",
    "control: EfficientControl",
    "control: GPC given",
    "control: LQR",
)


def test_whatever_is_accepted_can_be_played():
    outcomes = campaign(300, names=SOME)
    assert not {name: found for name, found in outcomes.items() if found.keys() - {"refused", "played"}}
    assert sum(found["refused"] for found in outcomes.values()) > 100
    assert sum(found["played"] for found in outcomes.values()) > 50


@pytest.mark.slow
def test_whatever_is_accepted_can_be_played_with_bounds_checked(tmp_path):
    """All kinds, and every access to an array of compiled code is checked."""
    env = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    run = subprocess.run([sys.executable, "-m", "tests.damage", "10000"], env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]


def played(name, count=30):
    world = WORLDS[name]
    learner = world.make()
    world.play(learner, 0, count)
    return learner


def change(key, where, value):
    def damage(state):
        state[key][where] = value

    return damage


def late(t, m, slots):
    """As after t rounds and m markers, in so many slots."""

    def damage(state):
        state["clock"][:3] = t
        state["markers"][0] = m
        state["born"] = np.array([(m >> k << k) * (m >> k & 1) for k in range(slots)])
        for key, array in state.items():
            if (key.startswith(("experts.", "meta.")) or key == "weights") and array.size:
                axis = 1 if key.startswith("meta.") else 0
                state[key] = np.repeat(np.take(array, [0], axis=axis), slots, axis=axis)

    return damage


DAMAGE = [  # who, what is done to its state, what the error says
    ("CBCE-shared", change("markers", 0, 0), "0 markers after 30 rounds"),
    ("SACS many", change("markers", 0, 0), "0 markers after 30 rounds"),
    ("AOA", change("markers", 0, 0), "0 markers after 30 rounds"),
    ("SACS many", late(2**61, 2**61 - 1, 62), "marks"),
    ("CBCE-shared", change("born", 0, 30), "born at other markers"),
    ("CBCE-shared", change("born", 3, -8), "born at other markers"),
    ("CBCE-shared", change("clock", 0, 29), "31 markers after 29 rounds"),
    ("CBCE-shared", change("clock", 2, 7), "counters cannot be"),
    ("CBCE-shared", change("clock", 4, 31), "counters cannot be"),
    ("CBCE-shared", change("weights", 0, -1.0), "weights cannot be"),
    ("CBCE-shared", change("y", 0, 50.0), "decision cannot be"),
    ("CBCE-shared", change("experts.points", (0, 0, 0), 1e200), "experts' points cannot be"),
    ("CBCE-shared", change("experts.ages", (4, 0), 31), "ages cannot be"),
    ("CBCE-shared", change("meta.ages", (0, 4), 3.5), "ages.* cannot be"),
    ("CBCE-shared", change("meta.gains", (0, 4), 16.0), "gains cannot be"),
    ("CBCE-shared", change("meta.log_wealth", (0, 4), 100.0), "wealth cannot be"),
    ("CBCE-shared", change("meta.log_prior", (0, 4), 0.0), "priors cannot be"),
    ("SAOL-shared", change("meta.log_weights", (0, 4), 12.0), "wealth cannot be"),
    ("AFLH-shared", change("meta.fresh", (0, 1), 3), "newcomers cannot be"),
    ("AFLH-shared", change("meta.log_weights", (0, 4), 0.1), "log weights cannot be"),
    ("AFLH-shared", change("meta.log_weights", (0, 4), -1e301), "log weights cannot be"),
    ("AFLH-shared", change("meta.log_weights", ..., -3.0), "log weights cannot be"),
    ("SACS many", change("paid", 0, 1e9), "loss since the last marker cannot be"),
    ("SACS many", change("paid", 0, -1.0), "loss since the last marker cannot be"),
    ("SACS many", change("marks", 1, 1), "marks cannot be"),
    ("SACS many", change("marks", 900, 7), "marks cannot be"),
    ("EfficientAdaptive many", change("inner.meta.units", 0, 0.5), "ranges.* cannot be"),
    ("EfficientAdaptive many", change("inner.meta.rates", ..., 0.0), "rates cannot be"),
    ("EfficientAdaptive many", change("inner.meta.gammas", ..., 9.0), "rates cannot be"),
    ("EfficientAdaptive many", change("inner.meta.squares", ..., -1.0), "sums of squares cannot be"),
    ("EfficientAdaptive many", change("inner.meta.log_weights", ..., 1e9), "wealth cannot be"),
    ("AOA", change("meta.sizes", (0, 0), 100.0), "sizes cannot be"),
    ("AOA", change("meta.regrets", (0, 4), -50.0), "regrets cannot be"),
    ("AOA", change("experts.weights", (4, 0), 2.0), "members' weights cannot be"),
    ("AOA", change("experts.meta.scores", (4, 0), -1e308), "scores cannot be"),
    ("EfficientDynamic", change("inner.experts.meta.sums", 0, -1.0), "sums of squares cannot be"),
    ("EfficientDynamic", change("inner.clock", slice(0, 3), 29), "30 rounds, and the learner inside 29"),
    ("EfficientDynamic", change("clock", 5, 2), "counters cannot be"),
    ("EfficientOptimistic", change("inner.hint", 0, 1e6), "decision, hint cannot be"),
    ("EfficientOptimistic", change("inner.y", 0, 1e6), "decision cannot be"),
    ("EfficientOptimistic", change("inner.mean", 0, 1e6), "decision, mean cannot be"),
    ("EfficientOptimistic", change("inner.weights", 0, -0.5), "weights cannot be"),
    ("EfficientOptimistic", change("inner.error", 0, -1.0), "errors of hints cannot be"),
    ("EfficientOptimistic", change("inner.meta.sums", 0, 1e30), "sums of squares cannot be"),
    ("EfficientOptimistic", change("inner.members.points", (0, 0, 0), 1e6), "experts' points cannot be"),
    ("SwordPP", change("hats", (0, 0), 1e6), "points cannot be"),
    ("SwordPP", change("moved", 0, -1.0), "ways moved cannot be"),
    ("SwordPP", change("scores", 0, 1e30), "scores cannot be"),
    ("SwordPP", change("weights", 0, 2.0), "weights cannot be"),
    ("SwordPP", change("last", 0, 1e30), "last gradient cannot be"),
    ("SwordPP", change("variation", 0, -1.0), "variation cannot be"),
    ("Scream custom", change("experts.members.moved", (0, 0), -1.0), "ways moved cannot be"),
    ("SOGD simplex", change("experts.sums", (0, 0), -3.0), "sums of squares cannot be"),
    ("AdaGradDescent in a pool, Hedge", change("experts.members.squares", (0, 1, 2), -1.0), "sums of squares cannot"),
    ("EfficientCutkosky", change("inner.bets", (0, 0), 1e30), "wealth cannot be"),
    ("EfficientCutkosky", change("inner.bets", (0, 0), 0.0), "wealth cannot be"),
    ("EfficientCutkosky", change("inner.bets", (0, 1), 0.7), "fractions cannot be"),
    ("EfficientCutkosky", change("inner.bets", (0, 2), 0.5), "sums of squares cannot be"),
    ("EfficientCutkosky", change("inner.directions", (0, 0), 1.5), "directions cannot be"),
    ("EfficientCutkosky", change("inner.chain", (0, 0), 0.1), "points cannot be"),
    ("EfficientCutkosky", change("inner.gaps", (0, 0), 1e9), "gaps cannot be"),
    ("EfficientCutkosky", change("inner.y", 0, 0.1), "decision cannot be"),
    ("PCA: EfficientPCA", change("Z", (0, 0), 1e9), "decision, experts' points"),
    ("PCA: EfficientPCA", change("scale", 0, -1.0), "experts' points"),
    ("PCA: EfficientPCA", change("A", (1, 0), 1e9), "eigenvectors cannot be|to diagonalise cannot be"),
    ("PCA: AdaptivePCA", change("points", (0, 1, 0), 0.5), "experts' points cannot be"),
    ("PCA: AdaptivePCA", change("P", (0, 0), 0.0), "decision"),
    ("PCA: DescentPCA", change("A", (0, 0), 1e9), "decision cannot be"),
    ("PCA: OjaPCA", change("W", (0, 0), 2.0), "basis cannot be"),
    ("PCA: YuanLamperskiPCA", change("A", (0, 0), 1e9), "decision cannot be"),
    ("control: LQR", change("u", 0, 1e300), "input cannot be"),
    ("control: LQR", change("clock", 1, 2), "counters cannot be"),
    ("control: EfficientControl", change("u", 0, 9.0), "its input is not what its policy answers"),
    ("control: EfficientControl", change("past", (0, 0), 1e100), "past disturbances cannot be"),
    ("control: EfficientControl", change("scales", 0, 3.0), "scales cannot be"),
    ("control: EfficientControl", change("scales", 1, 1.0), "scales cannot be"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "damage", "message"), DAMAGE)
def test_a_damaged_state_is_refused_and_nothing_changes(name, damage, message):
    learner, saved = played(name, 7), played(name).state()
    learner.clone().restore(saved)
    before = learner.state()
    damage(saved)
    with pytest.raises(StateError, match=message):
        learner.restore(saved)
    assert same(learner.state(), before)


@pytest.mark.parametrize("kind", range(len(KINDS)))
@pytest.mark.parametrize(("name", "key"), [("EfficientDynamic", "inner.experts.members.points"), ("SACS many", "born")])
def test_arrays_of_other_kinds_are_refused_or_read_as_they_are(name, key, kind):
    learner, saved = played(name, 7), played(name).state()
    before, exact = learner.state(), saved[key].copy()
    saved[key] = KINDS[kind](saved[key])
    try:
        learner.restore(saved)
    except StateError:
        assert same(learner.state(), before)
    else:
        assert np.array_equal(learner.state()[key], exact)
        WORLDS[name].play(learner, 30, 40)


@pytest.mark.parametrize(
    "saved",
    [{1: 2}, {"class": np.array(["a", "b"])}, {"class": "SOGD", "schema": [[1], [2, 3]]}, {"class": [[1], [2, 3]]}],
)
def test_mappings_that_are_no_states_are_refused(saved):
    with pytest.raises(StateError):
        tw.SOGD(tw.domains.Ball(2)).restore(saved)
    learner = tw.EfficientDynamic(tw.domains.Ball(2), 10, 1.0)
    with pytest.raises(StateError):
        learner.restore(learner.state() | {7: 7} | saved | {"x": None})


# ------------------------------------------------------------------------------ a round that is refused, with growth


class Failing:
    """A loss whose gradient fails."""

    def value(self, x):
        return 0.0

    def gradient(self, x):
        raise RuntimeError("no gradient")


class Steep:
    """A loss whose gradient is too long."""

    def value(self, x):
        return 0.0

    def gradient(self, x):
        return np.array([1e9, 0.0])


GROWING = {
    "own": lambda X: tw.CBCE(X, gradient_bound=1.0, gradients="own", horizon=2),
    "own, custom": lambda X: tw.CBCE(custom(X), gradient_bound=1.0, gradients="own", horizon=2),
    "shared": lambda X: tw.CBCE(X, gradient_bound=1.0, horizon=2),
    "shared, custom": lambda X: tw.CBCE(custom(X), gradient_bound=1.0, horizon=2),
    "reduced": lambda X: tw.EfficientCBCE(tw.domains.Simplex(2), gradient_bound=1.0, horizon=2),
    "thresholds": lambda X: tw.SACS(X, loss_bound=9.0, smoothness=1.0, threshold=0.1, gradients="own", horizon=2),
}


def custom(X):
    return tw.domains.Custom(X.project, 2, center=X.center, radius=X.radius)


@pytest.mark.parametrize("loss", [Failing(), Steep()])
@pytest.mark.parametrize("name", GROWING)
def test_a_refused_round_leaves_no_room_behind(name, loss):
    learner = GROWING[name](tw.domains.Ball(2))
    size = learner.state()
    for t in range(70):
        _ = learner.decision
        before = learner.state()
        if not (name == "thresholds" and isinstance(loss, Steep)):  # without a gradient bound nothing is too long
            with pytest.raises((RuntimeError, InputError)):
                learner.step(loss)
            assert same(learner.state(), before)
        learner.step(tw.losses.Squared([0.3, 0.4], (-1.0) ** t))
    assert any(np.shape(array) != np.shape(size[key]) for key, array in learner.state().items())
    fresh = learner.clone().state()
    learner.reset()
    assert same(learner.state(), fresh)  # it is as small as a new one


@pytest.mark.parametrize(("kind", "works"), [(EfficientPCA, 0), (AdaptivePCA, 0), (AdaptivePCA, 1)])
def test_an_eigendecomposition_that_fails_changes_nothing(kind, works, monkeypatch):
    """The first one of a round, or the second."""
    learner = kind(3, 1, rng=0)
    rows = np.random.default_rng(0).standard_normal((260, 3))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    exact, calls = kind._diagonalise, []

    def fails(self, A):
        calls.append(A)
        if len(calls) > works:
            A[...] = 7.0
            raise ProjectionError("no")
        return exact(self, A)

    for t, x in enumerate(rows):
        if t % 16 == 12:  # round 13 of 16: two experts of AdaptivePCA go on
            before = learner.state()
            with monkeypatch.context() as patch:
                patch.setattr(kind, "_diagonalise", fails)
                with pytest.raises(ProjectionError):
                    learner.update(x)
            assert same(learner.state(), before)
            calls.clear()
        learner.update(x)
    assert learner.state()["born"].size == 9
    learner.reset()
    assert same(learner.state(), learner.clone().state())  # it is as small as a new one
