"""Files: what is saved comes back bit for bit in another process, and what is damaged is refused."""

import functools
import importlib
import inspect
import json
import os
import pathlib
import runpy
import signal
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import thalweg as tw
from tests import examples, samples
from tests.samples import CONTROL, PCA, SAMPLES, make, show
from tests.worlds import clip
from thalweg import files
from thalweg._core.archive import SCHEMA, TEXT
from thalweg._core.recorded import build, describe
from thalweg._core.state import Block
from thalweg.cards import recipes
from thalweg.errors import InputError, StateError

ROOT = pathlib.Path(__file__).parents[1]
ROUNDS = 24
CARDS = [*recipes(), *PCA, *CONTROL]
SAVED = {*PCA, *CONTROL, *(recipe.kind.__name__ for recipe in recipes().values())}
QUIET = pytest.mark.filterwarnings("ignore::thalweg.errors.HorizonWarning")


def content(path):
    """The members of a file, the text read."""
    with zipfile.ZipFile(path) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    return found | {TEXT: json.loads(found[TEXT])}


@pytest.fixture
def saved(tmp_path):
    """The file of a learner on a ball."""
    path = tmp_path / "a.npz"
    tw.SOGD(tw.domains.Ball(2)).save(path)
    return path


def rewrite(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, json.dumps(data) if name == TEXT else data)


# ------------------------------------------------------------------------------------------------ saved and continued


def play(name, made, first=0, last=ROUNDS):
    """Rounds first..last-1, and the decision after them."""
    return [*samples.play(name, made, first, last), show(name, made)]


def equal(one, other):
    return len(one) == len(other) and all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_every_class_of_the_package_is_a_sample():
    modules = [importlib.import_module(f"thalweg.{place}".rstrip(".")) for place in files.PLACES]
    found = [getattr(module, name) for module in modules for name in module.__all__]
    public = {kind.__name__ for kind in found if isinstance(kind, type) and hasattr(kind, "restore")}
    public -= {kind.__name__ for kind in found if inspect.isabstract(kind)} | {"Learner", "PCALearner", "Controller"}
    assert public <= {type(SAMPLES[name].make()).__name__ for name in SAMPLES}
    assert len(public) > 25


@QUIET
@pytest.mark.parametrize(
    ("names", "splits"), [(CARDS, 2), pytest.param(list(SAMPLES), 20, marks=pytest.mark.slow)], ids=["cards", "all"]
)
def test_a_new_process_continues_bit_for_bit(tmp_path, names, splits):
    rng = np.random.default_rng(0)
    expected, lines = [], []
    for name in names:
        whole = play(name, make(name))
        for split in rng.choice(ROUNDS, splits, replace=False):
            learner = make(name)
            play(name, learner, 0, split)
            learner.save(tmp_path / f"{len(lines)}.npz")
            lines.append(f"{name} {split}")
            expected.append(whole[split:-1])
    (tmp_path / "names.txt").write_text("\n".join(lines))
    done = subprocess.run([sys.executable, "-m", "tests.samples", tmp_path], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "continued.npz") as continued:
        assert len(continued.files) >= 2 * len(lines)
        for key in continued.files:
            number, way = key.split()
            assert np.array_equal(continued[key], expected[int(number)]), f"{lines[int(number)]}, {way}"


@QUIET
@pytest.mark.parametrize("name", ["Tracker", "OGD custom", "EfficientPCA", "EfficientControl"])
def test_loading_leaves_no_trace_and_saving_is_deterministic(tmp_path, name):
    learner = make(name)
    play(name, learner, 0, 9)
    learner.save(tmp_path / "a.npz")
    loaded = tw.load(tmp_path / "a.npz", **SAMPLES[name].again)
    loaded.save(tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert loaded.rounds == 9
    assert loaded.queries == learner.queries
    assert sorted(os.listdir(tmp_path)) == ["a.npz", "b.npz"]
    with np.load(tmp_path / "a.npz") as arrays:  # a plain .npz without pickle
        assert arrays["state.clock"].tolist() == learner.state()["clock"].tolist()


@pytest.mark.parametrize(("name", "blocks"), [("Tracker", 1), ("EfficientControl", 2), ("Aggregator late", 1)])
def test_loading_checks_a_state_once(tmp_path, monkeypatch, name, blocks):
    path, checked, check = tmp_path / "one.npz", [], Block.damaged
    samples.played(name).save(path)
    monkeypatch.setattr(Block, "damaged", lambda block, past: checked.append(block.plan) or check(block, past))
    tw.load(path)
    assert len(checked) == blocks


def test_a_generator_is_not_needed_again(tmp_path):
    learner = tw.pca.OjaPCA(4, 2, step_size=0.1, rng=np.random.default_rng(8))
    learner.update([1.0, 0.0, 0.0, 0.0])
    learner.save(tmp_path / "a.npz")
    loaded = tw.load(tmp_path / "a.npz")
    assert np.array_equal(loaded.components, learner.components)
    loaded.reset()
    learner.reset()
    assert np.array_equal(loaded.components, learner.components)  # the seed came along


# ----------------------------------------------------------------------------------------------- arguments of all kinds


def sets():
    inner = tw.domains.Intersection(tw.domains.Ball(2), tw.domains.HalfSpace([1.0, 0.5], 0.25), tol=1e-9)
    return {
        "Ball": tw.domains.Ball((2, 1), 1 / 3, center=[[0.1], [np.float32(0.2)]]),
        "Box": tw.domains.Box([-np.inf, 0.0], [1.0, np.inf]),
        "Box of numbers": tw.domains.Box(-1, 1, shape=2),
        "Simplex": tw.domains.Simplex(np.int64(3), total=2),
        "L1Ball": tw.domains.L1Ball(3, radius=0.7),
        "Ellipsoid": tw.domains.Ellipsoid([[2.0, 0.1], [0.1, 1.0]], 0.3, center=(0.5, 0.25)),
        "HalfSpace": tw.domains.HalfSpace(np.arange(1, 4), 0.1),
        "Polytope": tw.domains.Polytope([[1.0, 0.0], [0, 1], [-1, -1]], [1, 1, 1.5], A_eq=[[1.0, 2.0]], b_eq=[0.5]),
        "Intersection": tw.domains.Intersection(inner, tw.domains.Ball(2, radius=0.9), max_iterations=500),
        "ProductOfBalls": tw.domains.ProductOfBalls(3, [1.0, 2.0], sizes=[2, 1]),
        "SpectralBalls": tw.domains.SpectralBalls((2, 2, 3), [1.0, 0.5]),
        "Fantope": tw.domains.Fantope(4, 2),
    }


@pytest.mark.parametrize("name", sets())
def test_every_set_comes_back_the_same(tmp_path, name):
    X = sets()[name]
    learner = tw.SOGD(X) if np.isfinite(X.radius) else tw.SOGD(tw.domains.Intersection(X, tw.domains.Ball(X.shape)))
    learner.save(tmp_path / "a.npz")
    Y = tw.load(tmp_path / "a.npz").domain
    Y = Y if np.isfinite(X.radius) else Y.domains[0]
    assert type(Y) is type(X)
    assert describe(Y) == describe(X)
    points = np.random.default_rng(0).normal(size=(20, *X.shape)) * 3
    assert all(np.array_equal(X.project(y), Y.project(y)) for y in points)


def test_all_sets_are_tried():
    kinds = {type(X) for X in sets().values()} | {tw.domains.Custom, tw.domains.Domain}
    assert kinds == {getattr(tw.domains, name) for name in tw.domains.__all__}


def test_what_is_changed_after_it_was_given_does_not_matter(tmp_path):
    center = np.zeros(2)
    learner = tw.SOGD(tw.domains.Ball(2, center=center), start=(start := [0.25, 0.0]))
    center[0] = start[0] = 9.0
    learner.save(tmp_path / "a.npz")
    assert tw.load(tmp_path / "a.npz").decision.tolist() == [0.25, 0.0]


def test_functions_are_given_again(tmp_path):
    path = tmp_path / "a.npz"
    X = tw.domains.Intersection(tw.domains.Custom(clip, 2, 0.5, 3.0), tw.domains.Ball(2))
    learner = tw.EfficientAdaptive(X, 9, 4.0, 1.0, threshold=lambda m: 1.5)
    learner.save(path)
    both = {"domain.domains.0.project": clip, "threshold": lambda m: 1.5}
    assert np.array_equal(tw.load(path, **both).decision, learner.decision)
    assert tw.load(path, domain=X, threshold=both["threshold"]).domain is X
    for given, message in [
        ({}, r"cannot hold clip, the argument 'domain.domains.0.project' of EfficientAdaptive.*\*\*{'domain.domains.0"),
        ({"domain": X}, r"cannot hold .*lambda>, the argument 'threshold' .* load\(path, threshold=...\)"),
        (both | {"threshold": lambda m: 1.5 + (m > 40)}, "saved with inner.thresholds = "),
        (both | {"delta": 2.0}, "saved with delta = 1, this learner has delta = 2"),
        (both | {"domain.domains.0.project": 3.0}, "Custom says: The 'project' parameter"),
    ]:
        with pytest.raises(StateError, match=message):
            tw.load(path, **given)
    for given, message in [
        ({"colour": "red"}, "has no argument 'colour'"),
        ({"domain.colour": 1}, "has no argument 'domain.c"),
    ]:
        with pytest.raises(InputError, match=message):
            tw.load(path, **both, **given)


class Mine(tw.SOGD):
    """A class of one's own."""

    def __init__(self, domain, speed=1.0):
        self.speed = speed
        super().__init__(domain, scale=speed)


class MySet(tw.domains.Ball):
    pass


def test_a_class_of_ones_own_is_given_again(tmp_path):
    learner = Mine(MySet(2, radius=2.0), speed=0.5)
    learner.update([1.0, 0.0])
    learner.save(tmp_path / "a.npz")
    loaded = tw.load(tmp_path / "a.npz", cls=(Mine, MySet))
    assert (type(loaded), type(loaded.domain), loaded.speed) == (Mine, MySet, 0.5)
    assert np.array_equal(loaded.decision, learner.decision)
    assert "Mine (a class of your own), 1 rounds" in files.summary(tmp_path / "a.npz")
    for cls in ((), Mine, MySet, (tw.SOGD, MySet)):
        with pytest.raises(StateError, match=r"holds a 'M\w+', a class of your own. Give it: load\(path, cls=...\)"):
            tw.load(tmp_path / "a.npz", cls=cls)


# ------------------------------------------------------------------------------------------ written whole or not at all


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    learner, path = tw.SOGD(tw.domains.Ball(2)), tmp_path / "a.npz"
    learner.save(path)
    old = path.read_bytes()
    learner.update([1.0, 0.0])
    calls = {"write": ("writestr", zipfile.ZipFile), "fsync": ("fsync", os), "replace": ("replace", os)}
    for what, (name, place) in calls.items():

        def fail(*arguments, what=what):
            raise OSError(28, f"no space to {what}")

        with monkeypatch.context() as broken:
            broken.setattr(place, name, fail)
            with pytest.raises(OSError, match=what):
                learner.save(path)
        assert path.read_bytes() == old
        assert os.listdir(tmp_path) == ["a.npz"]
    with pytest.raises(InputError, match="no regular file"):
        learner.save(tmp_path)
    assert os.listdir(tmp_path) == ["a.npz"]
    with pytest.raises(FileNotFoundError):
        learner.save(tmp_path / "none" / "a.npz")
    learner.save(path)
    assert tw.load(path).rounds == 1


def test_it_is_on_the_disk_before_it_is_named(tmp_path, monkeypatch):
    """A power cut must not show the new name before the new content."""
    order, fsync, replace = [], os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (order.append("sync"), fsync(fd)))
    monkeypatch.setattr(os, "replace", lambda a, b: (order.append("replace"), replace(a, b)))
    tw.SOGD(tw.domains.Ball(2)).save(tmp_path / "a.npz")
    assert order == ["sync", "replace", "sync"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "link.npz").symlink_to(tmp_path / "a.npz")
    tw.SOGD(tw.domains.Ball(2)).save(tmp_path / "link.npz")
    assert (tmp_path / "link.npz").is_symlink()
    assert tw.load(tmp_path / "link.npz").rounds == 0


# ---------------------------------------------------------------------------------------------------- versions of files


def test_a_newer_file_is_refused_with_both_versions(saved):
    members = content(saved)
    members[TEXT] |= {"schema": SCHEMA + 1, "thalweg": "9.1"}
    rewrite(saved, members)
    message = rf"schema {SCHEMA + 1}, of thalweg '9.1'. This is thalweg {tw.__version__}, .*Upgrade thalweg"
    for read in (tw.load, files.summary):
        with pytest.raises(StateError, match=message):
            read(saved)


def world(n=40):
    rng = np.random.default_rng(5)
    return [tw.losses.Squared(a, b) for a, b in zip(rng.uniform(-1, 1, (n, 3)), rng.uniform(-1, 1, n), strict=True)]


def test_every_class_has_an_example_file_of_this_version():
    kept = {path.stem for path in (examples.DATA / tw.__version__).glob("*.npz")}
    assert kept == examples.names().keys(), "run python -m tests.examples"


@QUIET
@pytest.mark.parametrize(
    "path", sorted(examples.DATA.glob("*/*.npz")), ids=lambda path: f"{path.stem} {path.parent.name}"
)
def test_a_file_of_a_release_is_read_by_every_later_one(path):
    """It goes on as one that played all rounds today, up to rounding on other machines."""
    loaded, name = tw.load(path), examples.names()[path.stem]
    fresh = build(type(loaded), loaded._arguments())
    assert (type(loaded).__name__, loaded.rounds) == (path.stem, examples.ROUNDS)
    whole = samples.play(name, fresh, 0, examples.ROUNDS + 8)[examples.ROUNDS :]
    for mine, theirs in zip(samples.play(name, loaded, examples.ROUNDS, examples.ROUNDS + 8), whole, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-6)


# -------------------------------------------------------------------------------------- the state of another is refused


A, B = np.array([[1.0, 0.0], [0, 1], [-1, -1]]), np.array([1.0, 1.0, 1.5])
BALL = tw.domains.Ball(2)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            tw.domains.Intersection(BALL, tw.domains.Box(-0.5, 1, shape=2)),
            tw.domains.Intersection(BALL, tw.domains.Box(-0.5, 2, shape=2)),
        ),
        (tw.domains.Intersection(BALL, BALL), tw.domains.Intersection(BALL, BALL, tol=1e-9)),
        (tw.domains.Polytope(A, B), tw.domains.Polytope(A[[1, 0, 2]], B)),
        (tw.domains.Custom(clip, 2, 0.5, 3.0), tw.domains.Custom(clip, 2, 0.5, 3.0, tolerance=1e-7)),
        (tw.domains.Custom(clip, 2, 0.5, 3.0), tw.domains.Custom(clip, 2, 0.25, 3.0)),
        (tw.domains.Ball((2, 3)), tw.domains.Ball((3, 2))),
        (tw.domains.Ball(20), tw.domains.Ball(20, center=np.eye(20)[19] * 1e-16)),
        (tw.domains.SpectralBalls((2, 2, 2), [1.0, 0.5]), tw.domains.SpectralBalls((2, 2, 2), [0.5, 1.0])),
    ],
)
def test_a_state_on_another_set_is_refused(one, other):
    saved = tw.SOGD(one).state()
    tw.SOGD(one).restore(saved)
    with pytest.raises(StateError, match="saved with domain = "):
        tw.SOGD(other).restore(saved)


def test_the_same_set_written_in_another_way_is_the_same():
    saved = tw.OGD(tw.domains.Ball(2), step_size=1).state()
    tw.OGD(tw.domains.Ball((2,), radius=1), step_size=np.float64(1.0)).restore(saved)
    tw.OGD(domain=tw.domains.Ball([2], 1.0, None), step_size=1.0, on_violation="clip").restore(saved)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"threshold": lambda m: 1.0}, {"threshold": lambda m: 1.0 + (m > 1)}),
        ({"meta": tw.metas.AdaptMLProd(2.0)}, {"meta": tw.metas.AdaptMLProd(3.0)}),
        ({"meta": tw.metas.AdaptMLProd(2.0)}, {"meta": tw.metas.AdaNormalHedge(2.0)}),
        ({"expert": tw.experts.Descent(BALL, 0.1)}, {"expert": tw.experts.Descent(BALL, 0.1, step_rule="decaying")}),
        ({"expert": lambda n: tw.experts.Descent(BALL, 0.1)}, {"expert": lambda n: tw.experts.Descent(BALL, 0.1 * n)}),
        ({"restart": "center"}, {"restart": "current"}),
    ],
)
def test_a_state_with_other_parts_is_refused(one, other):
    given = {"domain": BALL, "expert": tw.experts.Descent(BALL, 0.5), "meta": tw.metas.AdaptMLProd("observed")}
    saved = tw.Cover(**given | one).state()
    tw.Cover(**given | one).restore(saved)
    with pytest.raises(StateError, match="it was saved with"):
        tw.Cover(**given | other).restore(saved)


def test_one_projection_of_another_inner_learner_is_refused():
    saved = tw.OneProjection(BALL, lambda Y: tw.SOGD(Y, scale=1.0)).state()
    tw.OneProjection(BALL, lambda Y: tw.SOGD(Y, scale=1)).restore(saved)
    with pytest.raises(StateError, match=r"saved with inner.scale = 1, this learner has inner.scale = 2"):
        tw.OneProjection(BALL, lambda Y: tw.SOGD(Y, scale=2.0)).restore(saved)


# --------------------------------------------------------------------------------------------------- a longer horizon


CONTINUES = ("CBCE", "AOA", "SACS", "SAOL", "EfficientCBCE", "EfficientAOA")
RESTARTS = (
    "OGD", "Ader", "AFLH", "Sword", "SwordPP", "EfficientDynamic", "EfficientDelayed", "EfficientOptimistic",
    "EfficientBandit", "Scream", "EfficientScream", "EfficientIntervalDynamic",
    "CutkoskyAdaptive", "EfficientCutkosky", "CutkoskyPrintedVariant", "DescentPCA",
    "YuanLamperskiPCA", "GPC", "ScreamControl", "EfficientControl",
)  # fmt: skip
NONE = ("Tracker", "SOGD", "OjaPCA", "EfficientPCA", "AdaptivePCA", "LQR", "LinearFeedback", "Planted", "Preview",
        "IntegralLQR", "TrackingControl")  # fmt: skip


def test_every_class_has_its_say_about_a_longer_horizon():
    assert {*CONTINUES, *RESTARTS, *NONE, "EfficientAdaptive"} == SAVED


@QUIET
@pytest.mark.parametrize("name", [*CONTINUES, "SACS-eager"])
@pytest.mark.parametrize("T", [60, 5000])
def test_where_the_horizon_only_sizes_the_run_is_the_one_that_knew_it(tmp_path, name, T):
    known = make(name)
    known = type(known)(**known._given | {"horizon": T})
    whole = play(name, known)
    learner = make(name)
    play(name, learner, 0, 15)
    learner.save(tmp_path / "a.npz")
    longer = tw.load(tmp_path / "a.npz", horizon=T)
    assert longer.horizon == T
    assert equal(play(name, longer, 15), whole[15:])
    assert longer.markers == known.markers
    assert equal(play(name, learner.extended(T), 15), whole[15:])


@QUIET
@pytest.mark.parametrize("path", [None, 3, "", b"x", "a\0b", ["x"], 1.5], ids=repr)
def test_a_path_is_text(path):
    learner = tw.SOGD(tw.domains.Ball(2))
    for call in (learner.save, tw.load, tw.files.summary):
        with pytest.raises(tw.errors.InputError, match="'path' parameter"):
            call(path)


@pytest.mark.parametrize("horizon", [None, 0, -1, 2.5, "x", True, 2**64, np.nan, [1], 5], ids=repr)
def test_a_longer_horizon_is_a_longer_one(horizon):
    learner = tw.CBCE(tw.domains.Ball(2), gradient_bound=1.0, horizon=10)
    learner.update([1.0, 0.0])
    with pytest.raises(tw.errors.InputError, match="horizon"):
        learner.extended(horizon)
    assert learner.rounds == 1


def test_marks_of_a_cover_keep_their_order_in_a_longer_ring():
    """More markers than the ring of the first one holds."""
    X = tw.domains.Ball(2)
    short = tw.SACS(X, loss_bound=10.0, smoothness=1.0, threshold=1e-3, horizon=10)
    known = tw.SACS(X, loss_bound=10.0, smoothness=1.0, threshold=1e-3, horizon=3000)
    for t in range(1500):
        for learner in (short, known):
            learner.step(tw.losses.Squared([1.0, 0.0], 2.0 + t % 2))
    longer = short.extended(3000)
    kept = len(short.markers)
    assert kept == short.marker_count == 1501
    assert longer.markers[-kept:] == known.markers[-kept:]
    for learner in (longer, known):
        learner.step(tw.losses.Squared([1.0, 0.0], 2.0))
    assert longer.markers[-kept:] == known.markers[-kept:]


def test_efficient_adaptive_continues_and_later_thresholds_know():
    fs = world()
    learner = tw.EfficientAdaptive(tw.domains.Simplex(3), 20, 4.0, 3.0, threshold="paper")
    for f in fs[:19]:
        learner.step(f)
    longer = learner.extended(10**6)
    assert np.array_equal(longer.decision, learner.decision)
    assert longer.markers == learner.markers
    fresh = tw.EfficientAdaptive(tw.domains.Simplex(3), 10**6, 4.0, 3.0, threshold="paper")
    assert longer.inner.threshold(2) == fresh.inner.threshold(2) > learner.inner.threshold(2)
    for f in fs[19:]:  # no warning
        longer.step(f)
    assert longer.rounds == len(fs)


@QUIET
@pytest.mark.parametrize("name", RESTARTS)
def test_where_the_horizon_tunes_it_starts_anew_for_what_is_left(tmp_path, name):
    learner = make(name)
    play(name, learner, 0, 15)
    T = learner.horizon
    learner.save(tmp_path / "a.npz")
    longer = tw.load(tmp_path / "a.npz", horizon=4 * T)
    assert (longer.horizon, longer.rounds) == (4 * T - 15, 0)
    if "start" in inspect.signature(type(learner)).parameters:
        np.testing.assert_allclose(longer.decision, learner.decision, rtol=0, atol=1e-12)
    fresh = type(longer)(**longer._given)
    if hasattr(learner, "memory"):  # it knows the last disturbances and, where it has them, their scales
        assert np.array_equal(longer.state()["past"], learner.state()["past"])
        assert longer.gradient_bound == learner.gradient_bound is not None
        fresh._memory.state.past[:] = learner.state()["past"]
    elif hasattr(learner, "rank"):
        assert not np.array_equal(longer._seed, learner._seed)  # draws of its own
    assert equal(play(name, longer), play(name, fresh))


@QUIET
def test_what_a_longer_horizon_is_not():
    for name in NONE:
        with pytest.raises(InputError, match="was built without a horizon: it can go on as it is"):
            make(name).extended(1000)
    learner = make("Ader")
    play("Ader", learner, 0, 9)
    for horizon, message in (
        (learner.horizon - 1, f"must be at least {learner.horizon} here"),
        (1.5, "a whole number"),
    ):
        with pytest.raises(InputError, match=message):
            learner.extended(horizon)
    same = learner.extended(learner.horizon)
    assert equal(play("Ader", same, 9), play("Ader", learner, 9))
    inner = tw.OneProjection(BALL, functools.partial(tw.Ader, horizon=9, gradient_bound=1.0))
    with pytest.raises(InputError, match="make_inner sets the horizon"):
        inner.extended(99)
    for parts in (
        tw.OGD(BALL, 9, step_size=0.1),
        tw.Ensemble(BALL, [0.1, 0.2], horizon=9),
        tw.Alone(tw.experts.Descent(BALL, 0.1), horizon=9),
        tw.Cover(BALL, tw.experts.Descent(BALL, 0.1), meta=tw.metas.AdaptMLProd("observed"), horizon=9),
    ):
        parts.update([1.0, 0.5])
        longer = parts.extended(99)
        assert (longer.rounds, longer.horizon) == (1, 99)
        assert np.array_equal(longer.decision, parts.decision)


# ------------------------------------------------------------------------------------------------------- damaged files


def test_what_is_no_file_of_ours_is_told_in_a_line(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, a=np.zeros(2))
    with pytest.raises(StateError, match="not made by thalweg"):
        tw.load(path)
    for data in (b"", b"PK", b"hello" * 100, bytes(1000)):
        path.write_bytes(data)
        with pytest.raises(StateError, match="cannot be loaded"):
            tw.load(path)
    with pytest.raises(StateError, match="no file that can be loaded"):
        tw.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        tw.load(tmp_path / "none.npz")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StateError, match="no file that can be loaded"):
        tw.load(tmp_path / "pipe")


def test_a_file_can_name_only_what_is_public(saved):
    members = content(saved)
    for name in ("os.system", "eval", "Popen", "Machine", "thalweg.SOGD", "__class__", "play", "Ball"):
        text = json.loads(json.dumps(members[TEXT]))
        text["objects"][-1]["class"] = name
        rewrite(saved, members | {TEXT: text})
        with pytest.raises(StateError):
            tw.load(saved)


@pytest.mark.parametrize("shape", [10**13, [10**6, 10**6], 2**70, 1e12, [3, 10**9]])
def test_a_set_far_larger_than_the_file_is_not_built(saved, shape):
    members = content(saved)
    members[TEXT]["objects"][0]["arguments"]["shape"] = shape
    rewrite(saved, members)
    with pytest.raises(StateError, match="far larger than the file"):
        tw.load(saved)


def test_sets_in_sets_in_sets_are_refused_before_they_take_for_ever(tmp_path):
    """Each the intersection of the one before with itself: twice the work at every level."""
    path = tmp_path / "a.npz"
    tw.SOGD(tw.domains.Intersection(BALL, BALL)).save(path)
    members = content(path)
    ball, pair, learner = members[TEXT]["objects"]
    pairs = [pair | {"arguments": {"domains": {"tuple": [{"object": k}, {"object": k}]}}} for k in range(40)]
    learner["arguments"]["domain"] = {"object": 40}
    members[TEXT]["objects"] = [ball, *pairs, learner]
    rewrite(path, members)
    with pytest.raises(StateError, match="values in values in values"):
        tw.load(path)
    assert len(files.summary(path)) < 5000


# -------------------------------------------------------------------------------------------------------------- summary


def test_a_summary_shows_no_control_characters(tmp_path):
    path = tmp_path / "a.npz"
    tw.SOGD(tw.domains.Custom(clip, 2, 0.5, 3.0), start=[0.1, 0.2]).save(path)
    shown = files.summary(path)
    assert "SOGD, 0 rounds played" in shown
    assert "Custom(project=<not saved: clip>, shape=2, center=0.5, radius=3.0)" in shown
    assert "experts.points" in shown
    members, nasty = content(path), "\x1b[2J\x07‮evil\n"
    members[TEXT]["thalweg"] = nasty
    members[TEXT]["objects"][-1]["class"] = nasty
    members[TEXT]["objects"][-1]["arguments"][nasty] = {"missing": nasty}
    rewrite(path, members)
    shown = files.summary(path)
    assert all(line.isprintable() for line in shown.split("\n"))
    assert r"\x1b[2J\x07\u202eevil\n" in shown


def test_thalweg_show(tmp_path, works, fails):
    path = tmp_path / "a.npz"
    learner = tw.Ader(tw.domains.Ball(3), 50, 2.0)
    learner.update([1.0, 0.0, 0.0])
    learner.save(path)
    out, _ = works("show", path)
    assert out == files.summary(path) + "\n"
    assert "Ader, 1 rounds played" in out
    assert "experts.members.points  float64 1x4x3" in out
    assert "none.npz" in fails("show", tmp_path / "none.npz")
    assert "no file that can be loaded" in fails("show", tmp_path)
    path.write_bytes(path.read_bytes()[:-30])
    assert "cannot be loaded" in fails("show", path)


# -------------------------------------------------------------------------------------------------- a service is killed


def service(folder, rounds, every):
    command = [sys.executable, str(ROOT / "examples" / "service.py"), str(folder), "--rounds", str(rounds)]
    return subprocess.Popen([*command, "--every", str(every)], stdout=subprocess.PIPE, text=True)


def decisions(lines):
    """Round to decision, as text; where a round was served twice, both must be the same."""
    found = {}
    for line in lines:
        if line.endswith("\n") and line.count(" ") > 1:
            t, x = line.rstrip("\n").split(" ", 1)
            assert found.setdefault(int(t), x) == x, f"round {t} was decided in two ways"
    return found


@pytest.mark.parametrize("kills", [3, pytest.param(60, marks=pytest.mark.slow)])
def test_a_service_that_is_killed_resumes_bit_for_bit(tmp_path, kills):
    """Killed between checkpoints and, since one is written after every few rounds, during them."""
    rounds = 150 * kills
    script = runpy.run_path(str(ROOT / "examples" / "service.py"))
    learner, whole = script["resume"](tmp_path / "none.npz"), {}
    for t in range(rounds):
        whole[t] = " ".join(map(float.hex, learner.decision.tolist()))
        learner.step(script["event"](t))
    rng, lines = np.random.default_rng(0), []
    folder = tmp_path / "killed"
    for kill in range(kills):
        with service(folder, rounds, 0.005 if kill % 2 else 0.0) as running:
            lines += [running.stdout.readline() for _ in range(rng.integers(20, 130))]
            running.send_signal(signal.SIGTERM if kill == kills // 2 else signal.SIGKILL)
            lines += running.stdout.readlines()
        assert running.returncode == (0 if kill == kills // 2 else -signal.SIGKILL)
    with service(folder, rounds, 1.0) as last:
        lines += last.stdout.readlines()
    assert last.returncode == 0
    assert decisions(lines) == whole
    assert os.listdir(folder) == ["learner.npz"]
