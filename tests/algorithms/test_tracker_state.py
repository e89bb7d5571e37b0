"""A Tracker stops and resumes bit for bit, at any round; damaged states are refused, or can still be played."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tw
from tests.worlds import examples, slow_box
from thalweg.errors import InputError, StateError

WORLDS = {
    "ball": lambda: tw.Tracker(tw.domains.Ball(2, radius=2.0, center=[5.0, 0.0])),
    "simplex": lambda: tw.Tracker(tw.domains.Simplex(3), start=[0.0, 0.5, 0.5]),
    "no curvature": lambda: tw.Tracker(tw.domains.Box([-1.0, 0.0], [1.0, 3.0]), curvature=False),
    "no intervals": lambda: tw.Tracker(tw.domains.Ellipsoid([1.0, 2.0], bound=1.0), intervals=False),
    "no values": lambda: tw.Tracker(tw.domains.Ball((2, 2)), loss_floor=None),
    "custom": lambda: tw.Tracker(slow_box()),
}
T = 160


def rounds(learner, seed=0, growth=1.0):
    """Absolute losses whose best decision jumps; some rounds lack a value."""
    rng = np.random.default_rng(seed)
    for t in range(T):
        a = rng.normal(size=learner.domain.shape)
        b = float(np.sum(a * learner.domain.center)) + (1.0 if t // 50 % 2 else -1.0)
        yield growth**t * a, growth**t * b, rng.random() < 0.1 * (t > 0)


def advance(learner, feedback):
    """Decisions, and the one after the last round."""
    played = []
    for a, b, missing in feedback:
        played.append(learner.decision)
        error = float(np.sum(a * learner.decision)) - b
        learner.update(np.sign(error) * a, None if missing else abs(error))
    return np.array([*played, learner.decision])


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[key], b[key]) for key in a)


WAYS = {
    "restore": lambda learner, fresh: (fresh.restore(learner.state()), fresh)[1],
    "restore from a pickle": lambda learner, fresh: (fresh.restore(pickle.loads(pickle.dumps(learner.state()))), fresh)[
        1
    ],
    "deepcopy": lambda learner, fresh: copy.deepcopy(learner),
    "pickle": lambda learner, fresh: pickle.loads(pickle.dumps(learner)),
}


@given(
    split=st.integers(0, T), name=st.sampled_from(sorted(WORLDS)), way=st.sampled_from(sorted(WAYS)), read=st.booleans()
)
@settings(max_examples=examples(40, 1000))
def test_it_goes_on_from_any_round(split, name, way, read):
    learner = WORLDS[name]()
    if way == "pickle" and name == "custom":
        return  # a lambda does not pickle
    feedback = list(rounds(learner, growth=1.03))
    whole = advance(learner.clone(), feedback)
    advance(learner, feedback[:split])
    if not read:  # the decision of this round is not made yet
        learner._shown = None
    fresh = learner.clone()
    advance(fresh, list(rounds(fresh, seed=1))[:70])  # somebody with a past of its own
    other = WAYS[way](learner, fresh)
    assert same(other.state(), learner.state())
    assert np.array_equal(advance(other, feedback[split:]), whole[split:])
    assert np.array_equal(advance(learner, feedback[split:]), whole[split:])
    assert same(other.state(), learner.state())
    assert other.queries == learner.queries


@pytest.mark.parametrize("name", WORLDS)
def test_reset_and_clone_are_as_new(name):
    learner = WORLDS[name]()
    fresh, feedback = learner.state(), list(rounds(learner))
    first = advance(learner, feedback)
    assert same(learner.clone().state(), fresh)
    learner.reset()
    assert same(learner.state(), fresh)
    assert np.array_equal(advance(learner, feedback), first)


@pytest.mark.parametrize("split", [0, 1, 2, 63, 500, 1500])
def test_whole_runs_go_on(split):
    rng = np.random.default_rng(0)
    a = rng.normal(size=(1500, 3))
    b = a @ [1.0, -1.0, 0.5] * np.where(np.arange(1500) // 200 % 2, 1.0, -1.0) + rng.choice([-1.0, 1.0], size=1500)

    def problem(rows):
        return tw.problems.AbsoluteRegression(a[rows], b[rows])

    def make():
        return tw.Tracker(tw.domains.Ball(3, radius=2.0))

    learner = make()
    whole = tw.play(learner, problem(slice(None)), decisions=True).decisions
    assert learner.marker_count > 10
    one, other = make(), make()
    if split:
        tw.play(one, problem(slice(split)))
    other.restore(one.state())
    if split < 1500:
        assert np.array_equal(tw.play(other, problem(slice(split, None)), decisions=True).decisions, whole[split:])
    assert same(other.state(), learner.state())


# -------------------------------------------------------------------------------------------------------------- memory


@pytest.mark.parametrize("kind", ["squared", "absolute", "linear"])
@pytest.mark.parametrize("floor", [0.0, None])
def test_the_state_is_small(kind, floor):
    """Capacity follows the markers and members there are."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=(16_384, 4))
    a /= np.linalg.norm(a, axis=1, keepdims=True)
    w = np.cumsum(0.01 * rng.normal(size=a.shape), axis=0)
    b = np.sum(a * w / np.maximum(1.0, np.linalg.norm(w, axis=1, keepdims=True)), axis=1) + 0.3 * rng.normal(
        size=16_384
    )

    def problem(rows):
        if kind == "linear":
            return tw.problems.LinearLosses(a[rows], np.ones(a[rows].shape[0]))
        made = tw.problems.LinearRegression if kind == "squared" else tw.problems.AbsoluteRegression
        return made(a[rows], b[rows])

    learner = tw.Tracker(tw.domains.Ball(4), loss_floor=floor)
    tw.play(learner, problem(slice(128)))
    assert learner._memory.block.memory.nbytes <= 4000
    tw.play(learner, problem(slice(128, None)))
    assert learner._memory.block.memory.nbytes <= 7500


@pytest.mark.parametrize("name", WORLDS)
def test_a_refused_round_takes_no_capacity(name):
    """A round may need more capacity; where it is refused the sizes are those of before."""
    learner, sizes = WORLDS[name](), set()
    for a, b, missing in rounds(learner):
        before, held = learner.state(), dict(learner._memory.sizes)
        for gradient, loss in ((np.nan * a, None), (1e200 * a, None), (a, np.nan), (a, "x")):
            with pytest.raises(InputError):
                learner.update(gradient, loss)
        assert same(learner.state(), before)
        assert learner._memory.sizes == held
        advance(learner, [(a, b, missing)])
        sizes.add(tuple(learner._memory.sizes.values()))
    assert len(sizes) > 2


# ----------------------------------------------------------------------------------------------------- damaged states


def played(name="ball", growth=1.0, count=T):
    learner = WORLDS[name]()
    advance(learner, list(rounds(learner, growth=growth))[:count])
    return learner


def change(key, spot, value):
    def damage(state):
        state[key][spot] = value

    return damage


DAMAGE = {  # name: (what is written, what the error says)
    "too many members": (change("inner.members.sizes", 0, 61), "61 members"),
    "a negative number of members": (change("inner.members.sizes", 0, -1), "-1 members"),
    "members that do not add up": (change("inner.members.sizes", 2, 9), "to 9"),
    "no members after all": (change("inner.members.sizes", 0, 0), "no members"),
    "short steps": (change("inner.members.sizes", 1, -21), "from step -21"),
    "many markers": (change("inner.records.counts", 0, 2**58 - 1), "do not fit its 2882"),
    "negative markers": (change("inner.records.counts", 0, -1), "do not fit its -1 markers"),
    "another marker": (change("inner.records.counts", 0, 8), "slots for 8 markers"),
    "fewer markers": (change("inner.records.counts", 0, 1), "slots for 1 markers"),
    "a record too many": (change("inner.records.born", -1, 1), "records for . markers cannot be"),
    "a change": (change("inner.records.counts", 3, 1), "records for . markers cannot be"),
    "a record of the future": (change("inner.records.born", 0, 99), "records for . markers cannot be"),
    "i_min": (change("inner.records.counts", 1, 10**9), "anchors, counts cannot be"),
    "anchors": (change("inner.records.anchors", 0, -1000), "anchors cannot be"),
    "flat": (change("inner.records.flat", 0, 7), "flat cannot be"),
    "curved": (change("inner.curved", 0, 2), "members with curvature"),
    "nan": (change("inner.records.A", (0, 3), np.nan), "'inner.records.A' has entries that are nan"),
    "inf": (change("inner.members.points", (0, 0), np.inf), "'inner.members.points' has entries that are nan or inf"),
    "negative squares": (change("inner.members.sums", 0, -1.0), "sums.* cannot be"),
    "no squares": (change("inner.members.sums", 0, 0.0), "sums.* cannot be"),
    "another first step": (change("inner.members.sums", 2, 1e9), "sums cannot be"),
    "another next step": (change("inner.members.sums", 3, -8.0), "sums cannot be"),
    "marks": (change("inner.records.marks", 0, -1), "marks cannot be"),
    "a member outside": (change("inner.members.points", (4, 0), 7.5), "points cannot be"),
    "a decision outside": (change("inner.y", 0, 99.0), "points cannot be"),
    "weights above 1": (change("inner.p", 3, 2.0), "beliefs cannot be"),
    "negative beliefs": (change("inner.records.p", (0, 3), -0.5), "beliefs cannot be"),
    "huge gains": (change("inner.records.A", (0, 3), 1e308), "gains cannot be"),
    "gains of records": (change("inner.records.R", 0, 1e300), "gains of records cannot be"),
    "negative variance": (change("inner.records.V", 0, -1.0), "spreads cannot be"),
    "negative W": (change("inner.records.W", 0, -1.0), "gains of records cannot be"),
    "Bt below B0": (change("inner.records.totals", 2, 1e9), "totals"),
    "phi": (change("inner.records.totals", 0, -5.0), "totals"),
    "priors": (change("inner.records.prior", 0, 300.0), "priors cannot be"),
    "log-priors": (change("inner.members.logs", 3, 1e308), "log-priors cannot be"),
    "noise": (change("inner.curvature.watch", 0, -1.0), "watch cannot be"),
    "P": (change("inner.curvature.P", (0, 0, 0), 1e300), "P cannot be"),
    "the clock": (change("clock", 0, -1), "counters"),
    "the inner clock": (change("inner.clock", 0, 2**63 - 1), "counters"),
    "freshness": (change("clock", 5, 3), "counters cannot be"),
    "x": (change("x", 0, -50.0), "decision cannot be"),
}  # fmt: skip


ESTIMATE = {
    "a helper outside": change("inner.estimate.points", (4, 0), 7.5),
    "no errors": change("inner.estimate.errors", 3, 0.0),
    "negative gradients": change("inner.estimate.seen", 0, -1.0),
    "a future": change("inner.estimate.seen", 1, 1000.0),
    "half a round": change("inner.estimate.seen", 1, 8.5),
    "too early": change("inner.estimate.seen", 1, 2.0),
}


@pytest.mark.parametrize("name", [*DAMAGE, *ESTIMATE])
def test_a_damaged_state_is_refused(name):
    damage, message = DAMAGE[name] if name in DAMAGE else (ESTIMATE[name], "estimate cannot be")
    world = "no values" if name in ESTIMATE else "ball"
    saved = played(world).state()
    learner = played(world, count=7)
    before, x = learner.state(), learner.decision
    learner.restore(learner.state())
    damage(saved)
    with pytest.raises(StateError, match=message):
        learner.restore(saved)
    assert same(learner.state(), before)
    assert np.array_equal(learner.decision, x)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: tw.Tracker(tw.domains.Ball(2, radius=2.0)), "center"),
        (lambda: tw.Tracker(tw.domains.Ball(2, radius=2.0, center=[5.0, 0.0]), intervals=False), "intervals"),
        (lambda: tw.Tracker(tw.domains.Ball(2, radius=2.0, center=[5.0, 0.0]), curvature=False), "curvature"),
        (lambda: tw.Tracker(tw.domains.Ball(2, radius=2.0, center=[5.0, 0.0]), loss_floor=-1.0), "loss_floor"),
        (lambda: tw.Tracker(tw.domains.Ball(2, radius=2.0, center=[5.0, 0.0]), start=[5.0, 1.0]), "start"),
        (lambda: tw.SOGD(tw.domains.Ball(2)), "another learner, SOGD"),
    ],
)
def test_a_state_of_another_learner_is_refused(other, message):
    learner = played()
    before = learner.state()
    with pytest.raises(StateError, match=message):
        learner.restore(other().state())
    assert same(learner.state(), before)


WHOLE = [0, 1, -1, 2, 5, 59, 60, 1000, -1000, 2**31, 2**57, 2**58 - 1, 2**58, 2**62 - 10**6, -(2**62), 2**63 - 1]
REAL = [0.0, -1.0, 1.0, 1e-320, 1e-300, 1e-160, 1e-30, 1e30, 1e150, 1e300, 1.7e308, -1.7e308, np.nan, -1e-3, 0.5]


def damage(state, rng):
    """Change a few numbers at random, into what is likely to hurt."""
    keys = [
        key for key, array in state.items() if isinstance(array, np.ndarray) and array.size and "settings" not in key
    ]
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        array = state[keys[rng.integers(len(keys))]]
        spot, how = rng.integers(array.size), rng.random()
        with np.errstate(all="ignore"):
            if array.dtype.kind == "i":
                array.flat[spot] = rng.choice(WHOLE) if how < 0.7 else array.flat[spot] ^ rng.integers(8)
            elif how < 0.4:
                array.flat[spot] = rng.choice(REAL)
            elif how < 0.5:
                array[...] = rng.choice(REAL)
            elif how < 0.7:
                array.flat[spot] *= 10.0 ** rng.uniform(-3, 3)
            elif how < 0.8:
                array.flat[spot] *= 10.0 ** float(rng.integers(-300, 5))
            elif how < 0.9:
                array.flat[spot] *= -1
            else:
                array.flat[:] = rng.permutation(array.ravel())


def test_whatever_is_accepted_can_be_played():
    """Thousands of damaged states: refused with nothing changed, or played on with decisions that are sound."""
    rng = np.random.default_rng(0)
    saved = [
        (name, played(name, growth, count).state())
        for name in ("ball", "simplex", "no intervals")
        for growth in (1.0, 1.05)
        for count in (0, 1, 40, T)
    ]
    bystander = {name: played(name, count=5) for name in ("ball", "simplex", "no intervals")}
    before = {name: learner.state() for name, learner in bystander.items()}
    refused = 0
    for _ in range(examples(500, 40_000)):
        name, state = saved[rng.integers(len(saved))]
        learner, state = bystander[name], copy.deepcopy(state)
        damage(state, rng)
        try:
            learner.restore(state)
        except StateError:
            refused += 1
            assert same(learner.state(), before[name])
            continue
        for size in (1.0, 1e-3, 1e6, 1e-100, 1e100):
            for _ in range(8):
                assert learner.domain.contains(learner.decision, tol=1e-6)
                g = size * rng.normal(size=learner.domain.shape)
                learner.update(g, None if rng.random() < 0.2 else size * abs(rng.normal()))
        state = learner.state()
        learner.restore(state)  # and it is sound now
        learner.restore(before[name])
    assert refused > 150
