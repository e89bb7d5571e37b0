"""Damaged states of everything that can be saved: `python -m tests.damage COUNT [SEED]` tries so many, and counts.

A valid state, after some rounds, has one to three entries damaged and is restored. Then either a StateError says so and
nothing has changed, or the learner works: it plays 50 more rounds, with decisions that are finite and feasible.
"""

import collections
import copy
import faulthandler
import sys
import traceback
import warnings

import numpy as np

from tests.control.test_controllers import scene, tight
from tests.machines.cases import COMBINATIONS
from tests.pca.test_contenders import LEARNERS as PCA
from tests.pca.test_contenders import stream
from tests.worlds import LEARNERS
from thalweg.control import GPC, LQR, EfficientControl, LinearFeedback, ScreamControl, lqr_gain
from thalweg.errors import HorizonWarning, StateError
from thalweg.testing._learner import _stream

MORE = 50  # rounds that an accepted state is played for
HUNG = 120.0  # seconds for one state

SYSTEM, COSTS, WIND = scene(200)
CONTROLLERS = {
    "LQR": lambda: LQR(SYSTEM, disturbance_bound=5.0),
    "LinearFeedback": lambda: LinearFeedback(SYSTEM, gain=lqr_gain(SYSTEM, R=2.0)),
    "GPC": lambda: GPC(SYSTEM, 100, memory=3),
    "GPC given": lambda: GPC(SYSTEM, 100, constants=tight(), step_size=0.1),
    "ScreamControl": lambda: ScreamControl(SYSTEM, 100, memory=3, disturbance_bound=5.0),
    "ScreamControl given": lambda: ScreamControl(SYSTEM, 100, constants=tight()),
    "EfficientControl": lambda: EfficientControl(SYSTEM, 100, memory=3),
    "EfficientControl given": lambda: EfficientControl(SYSTEM, 100, constants=tight()),
}


# ------------------------------------------------------------------------------------------------------ whole rounds


class LearnerRounds:
    """A learner of losses."""

    def __init__(self, make):
        self.make = make
        self.losses = _stream(make, 200)

    def play(self, learner, start, stop):
        for f in self.losses[start:stop]:
            assert np.isfinite(learner.decision).all()
            assert learner.domain.contains(learner.decision, tol=1e-6)
            if learner.rounds not in getattr(learner, "outstanding", [learner.rounds]):
                learner.advance()  # the present round has had its feedback
            learner.step(f)


class PCARounds:
    """A learner of subspaces."""

    def __init__(self, make):
        self.make = make
        self.instances = stream(make(), 200)

    def play(self, learner, start, stop):
        for x in self.instances[start:stop]:
            assert learner.domain.contains(learner.decision, tol=1e-6)
            V = learner.components
            assert np.abs(V @ V.T - np.eye(len(V))).max() < 1e-6
            assert np.isfinite(learner.update(x))


class ControlRounds:
    """A controller. Every other run begins in the middle of a round, if its state is of one."""

    def __init__(self, make):
        self.make = make

    def play(self, controller, start, stop):
        saved = controller.state()
        x = saved["x"]
        for t in range(start, stop):
            u = controller.act(x) if t > start or t % 2 or not saved["clock"][1] else saved["u"]
            assert np.isfinite(u).all()
            if hasattr(controller, "domain"):
                assert controller.domain.contains(controller.matrices, tol=1e-6)
            x = SYSTEM.A @ x + SYSTEM.B @ u + WIND[t]
            controller.observe(COSTS[t], x)
        controller.act(x)


WORLDS = {
    **{f"PCA: {name}": PCARounds(make) for name, make in PCA.items()},
    **{f"control: {name}": ControlRounds(make) for name, make in CONTROLLERS.items()},
    **{name: LearnerRounds(make) for name, make in (LEARNERS | COMBINATIONS).items()},
}


# ----------------------------------------------------------------------------------------------------------- damages

WHOLE = [0, 1, -1, 2, 3, 7, 8, 59, 63, 1000, -1000, 2**31, 2**57, 2**62 - 10**6, 2**62 + 1, -(2**62), 2**63 - 1]
REAL = [0.0, -1.0, 1.0, 1e-320, 1e-300, 1e-160, 1e-30, 1e30, 1e100, 1e150, 1e300, 1.7e308, -1.7e308, np.nan, np.inf]
REAL += [-1e-3, 0.5, -np.inf, -0.5, 2.0, -1e200]


class Own(np.ndarray):
    """A subclass."""


def masked(a):
    return np.ma.array(a, mask=np.arange(a.size).reshape(a.shape) == 0)


KINDS = [
    lambda a: a.astype(object),
    lambda a: a.astype(str),
    lambda a: a.astype(complex),
    lambda a: a.astype(">f8" if a.dtype.kind == "f" else ">i8"),
    lambda a: a.astype(np.float32),
    lambda a: a.astype(np.int64 if a.dtype.kind == "f" else np.float64),
    lambda a: a.astype(np.uint64),
    lambda a: a.tolist(),
    lambda a: [a, [a]],
    lambda a: a.ravel()[0] if a.size else None,
    lambda a: np.array(a.ravel()[0] if a.size else 0.0),
    lambda a: np.asfortranarray(a),
    lambda a: a.view(Own),
    lambda a: np.ma.array(a),
    masked,
    lambda a: np.broadcast_to(a, a.shape),
    lambda a: a[None],
    lambda a: a.ravel(),
    lambda a: a[:-1],
    lambda a: np.concatenate([a, a]),
    lambda a: np.zeros((0, *a.shape[1:])),
    lambda a: None,
    lambda a: "nonsense",
    lambda a: a.T,
]


def spot(array, rng):
    """Another number in one place, or in all."""
    i, how = rng.integers(array.size), rng.random()
    with np.errstate(all="ignore"):
        if array.dtype.kind == "i":
            array.flat[i] = rng.choice(WHOLE) if how < 0.5 else array.flat[i] + rng.integers(-2, 3)
        elif how < 0.4:
            array.flat[i] = rng.choice(REAL)
        elif how < 0.5:
            array[...] = rng.choice(REAL)
        elif how < 0.7:
            array.flat[i] *= 10.0 ** rng.uniform(-3, 3)
        elif how < 0.8:
            array.flat[i] *= -1
        elif how < 0.9:
            array.flat[i] += rng.normal()
        else:
            array.flat[:] = rng.permutation(array.ravel())


def damage(state, others, rng):
    """Damage one to three entries of a state; `others` are states of the same learner at other rounds."""
    for _ in range(rng.integers(1, 4)):
        keys = [key for key, value in state.items() if isinstance(value, np.ndarray) and "settings" not in key]
        key, how = keys[rng.integers(len(keys))], rng.random()
        if how < 0.6 and state[key].size and state[key].dtype.kind in "fi" and state[key].flags.writeable:
            spot(state[key], rng)
        elif how < 0.75:
            other = others[rng.integers(len(others))]
            state[key] = copy.deepcopy(other.get(key))
        elif how < 0.85:
            same = [k for k in keys if state[k].shape == state[key].shape and state[k].dtype == state[key].dtype]
            twin = same[rng.integers(len(same))]
            state[key], state[twin] = state[twin], state[key]
        elif how < 0.88:
            del state[key]
        elif how < 0.91:
            names = [k for k in state if "settings" in k or k in ("class", "schema")]
            value = [None, np.zeros(3), "nonsense", [[1], [2, 3]], 7, np.array(["a", "b"])][rng.integers(6)]
            state[names[rng.integers(len(names))]] = value
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    state[key] = KINDS[rng.integers(len(KINDS))](state[key])
                except (ValueError, TypeError, IndexError):
                    state[key] = None


# ---------------------------------------------------------------------------------------------------------- campaign


def same(a, b):
    return a.keys() == b.keys() and all(
        np.array_equal(a[key], b[key]) and np.shape(a[key]) == np.shape(b[key]) for key in a
    )


class Trial:
    """One kind of learner, states that runs of it have left, and somebody they are restored into."""

    def __init__(self, name, seed=0):
        self.world, rng = WORLDS[name], np.random.default_rng([seed, len(name)])
        self.states = []
        learner = self.world.make()
        for count in sorted({0, 1, *(int(n) for n in rng.integers(2, 140, size=6))}):
            self.world.play(learner, len(self.states) and self.last, count)
            self.last = count
            if rng.random() < 0.5 and hasattr(learner, "decision"):
                _ = learner.decision
            self.states.append(learner.state())
        self.bystander = self.world.make()
        for state in self.states:  # what a run has left is never refused
            self.bystander.restore(state)
            assert same(self.bystander.state(), state)
        self.bystander.reset()
        self.world.play(self.bystander, 0, 5)
        self.before = self.bystander.state()

    def run(self, rng):
        """One damaged state: "refused", "played", or what went wrong."""
        state = copy.deepcopy(self.states[rng.integers(len(self.states))])
        damage(state, self.states, rng)
        learner = self.bystander
        try:
            learner.restore(state)
        except StateError:
            return "refused" if same(learner.state(), self.before) else "refused, but something changed"
        first = int(rng.integers(0, 150))
        try:
            self.world.play(learner, first, first + MORE)
            learner.restore(learner.state())
        finally:
            try:
                self.bystander.restore(self.before)
            except StateError:
                self.bystander = self.world.make()
                self.bystander.restore(self.before)
        return "played"


def campaign(count, seed=0, names=None, tell=lambda *_: None):
    """So many damaged states, as evenly over all kinds as can be: {name: Counter of outcomes}."""
    names = sorted(names or WORLDS)
    found = {}
    for i, name in enumerate(names):
        trial, rng, outcomes = Trial(name, seed), np.random.default_rng([seed, i]), collections.Counter()
        for _ in range(count // len(names) + (i < count % len(names))):
            kept = copy.deepcopy(rng.bit_generator.state)
            try:
                outcomes[trial.run(rng)] += 1
            except Exception as error:
                outcomes[f"{type(error).__name__}: {str(error)[:100]}"] += 1
                tell(name, kept, traceback.format_exc())
        found[name] = outcomes
    return found


if __name__ == "__main__":
    total, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    names = [name for name in WORLDS if any(word in name for word in sys.argv[3:])] if len(sys.argv) > 3 else None
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", HorizonWarning)
    sums = collections.Counter()
    for i, name in enumerate(sorted(names or WORLDS)):
        faulthandler.dump_traceback_later(HUNG + 300, exit=True)
        share = total // len(names or WORLDS) + (i < total % len(names or WORLDS))
        outcomes = campaign(share, seed + i, [name], lambda *told: print(*told, file=sys.stderr))[name]
        sums += outcomes
        print(f"{name}: {dict(outcomes)}", flush=True)
    print(f"all: {dict(sums)}")
    sys.exit(bool(sums.keys() - {"refused", "played"}))
