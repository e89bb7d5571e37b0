"""The other learners of online PCA, each against a twin; what all of them keep; comparators in hindsight."""

import copy
import inspect
import itertools
import math
import pickle

import numpy as np
import pytest
import scipy.linalg

import thalweg as tw
from tests.samples import refused
from thalweg.domains import Fantope
from thalweg.errors import HorizonWarning, InputError, StateError
from thalweg.pca import (
    AdaptivePCA,
    DescentPCA,
    EfficientPCA,
    OjaPCA,
    RankWarning,
    YuanLamperskiPCA,
    best_subspace,
    dyadic_regret,
)
from thalweg.pca.yuan_lamperski import capped

LEARNERS = {
    "EfficientPCA": lambda rng=0: EfficientPCA(5, 2, rng=rng),
    "EfficientPCA, paper's ball": lambda rng=0: EfficientPCA(
        5, 2, gradient_bound=2.0, surrogate=tw.domains.Ball((5, 5), radius=math.sqrt(2)), rng=rng
    ),
    "EfficientPCA, smallest": lambda rng=0: EfficientPCA(2, 1, rng=rng),
    "DescentPCA": lambda rng=0: DescentPCA(5, 2, 400, rng=rng),
    "AdaptivePCA": lambda rng=0: AdaptivePCA(5, 2, rng=rng),
    "YuanLamperskiPCA": lambda rng=0: YuanLamperskiPCA(5, 2, 400, rng=rng),
    "OjaPCA": lambda rng=0: OjaPCA(5, 2, step_size=0.1, rng=rng),
}


def stream(learner, rounds, seed=0):
    """Vectors and now and then a matrix, within the bound, from a subspace that changes."""
    rng = np.random.default_rng(seed)
    d, k, G = learner.dim, learner.rank, learner.gradient_bound
    out = []
    for t in range(rounds):
        if t % 30 == 0:
            A = np.linalg.qr(rng.standard_normal((d, k)))[0]
        x = A @ rng.standard_normal(k) + 0.1 * rng.standard_normal(d)
        x *= math.sqrt(G) * rng.uniform(0.3, 1.0) / np.linalg.norm(x)
        out.append(np.outer(x, x) if t % 7 == 3 else x)
    return out


def play(learner, instances):
    """Losses, decisions and drawn directions, with those after the last round."""
    losses, decisions, drawn = [], [], []
    for x in instances:
        decisions.append(np.array(learner.decision))
        drawn.append(learner.components)
        losses.append(learner.update(x))
    return losses, np.array([*decisions, learner.decision]), np.array([*drawn, learner.components])


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


# ------------------------------------------------------------------------------------------------ what all of them keep


@pytest.fixture(params=LEARNERS)
def make(request):
    return LEARNERS[request.param]


def test_decisions_are_feasible_and_losses_theirs(make):
    learner = make()
    d, k, fantope = learner.dim, learner.rank, Fantope(learner.dim, learner.rank)
    for x in stream(learner, 60):
        P, V, Q, W = learner.decision, learner.components, learner.projection, learner.leading
        X = np.outer(x, x) if x.ndim == 1 else x
        assert fantope.contains(P, tol=1e-9)
        assert np.array_equal(P, P.T)
        assert not P.flags.writeable
        kept = P.copy()
        assert V.shape == W.shape == (k, d)
        for rows in (V, W):
            np.testing.assert_allclose(rows @ rows.T, np.eye(k), atol=1e-12)
        np.testing.assert_allclose(Q, V.T @ V, atol=1e-12)
        assert np.array_equal(learner.components, V)  # one draw a round
        assert np.trace(W @ P @ W.T) == pytest.approx(np.linalg.eigvalsh(P)[-k:].sum(), abs=1e-9)
        assert np.array_equal(learner.transform(X), X @ W.T)  # the directions that stay put
        assert learner.transform(X[0]).shape == (k,)
        np.testing.assert_allclose(sum(p * U.T @ U for p, U in learner.mixture()), P, atol=1e-9)
        assert learner.update(x) == pytest.approx(np.trace(X) - np.sum(P * X), abs=1e-12)
        assert np.array_equal(P, kept)  # what was shown does not change
    assert learner.rounds == learner.queries.gradients == 60


def test_a_copy_asks_no_generator_and_warns_not_again(recwarn):
    rng = np.random.default_rng(3)
    with pytest.warns(RankWarning):
        learner = EfficientPCA(3, 2, rng=rng)
    asked = rng.bit_generator.state
    for twin in (copy.copy(learner), copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))):
        assert twin.rng.bit_generator.state == asked
        assert np.array_equal(twin.components, learner.components)
    assert rng.bit_generator.state == asked
    assert not recwarn


BAD = {
    "not symmetric": (np.triu(np.full((5, 5), 0.1)), "not symmetric: .* transpose by 0.1"),
    "indefinite": (np.diag([0.5, 0.0, 0.0, 0.0, -0.1]), "not positive semidefinite: its smallest eigenvalue is -0.1"),
    "wrong dimension": (np.zeros(6), r"shape \(6,\). Pass a vector \(5,\)"),
    "wrong matrix": (np.zeros((5, 6)), r"shape \(5, 6\)"),
    "many rows": (np.zeros((7, 5)), "partial_fit"),
    "a number": (0.5, r"shape \(\)"),
    "too long": (np.full(5, 0.51), r"\|\|x\|\|\^2 = 1.3005, above gradient_bound = 1"),
    "too large a matrix": (np.eye(5), r"\|\|X\|\|_F = 2.23607, above gradient_bound = 1"),
    "nan": (np.array([0.1, np.nan, 0.0, 0.0, 0.0]), "nan or infinite"),
    "infinite": (np.array([0.1, np.inf, 0.0, 0.0, 0.0]), "nan or infinite"),
    "nan in a matrix": (np.full((5, 5), np.nan), "nan or infinite"),
    "overflow": (np.full(5, 1e200), "above gradient_bound"),
    "text": (["a", "b", "c", "d", "e"], "real numbers"),
    "complex": (np.zeros(5, dtype=complex), "real numbers"),
    "ragged": ([[1.0], [1.0, 2.0]], "real numbers"),
    "nothing": (None, "real numbers"),
}


@pytest.mark.parametrize("name", [name for name in LEARNERS if "," not in name])
def test_bad_instances_are_refused_and_nothing_changes(name):
    learner = LEARNERS[name]()
    play(learner, stream(learner, 9))
    P, V = np.array(learner.decision), learner.components
    for instance, message in BAD.values():
        with refused(learner, f"^{name}, round 10: .*{message}"):
            learner.update(instance)
        assert np.array_equal(learner.decision, P)
        assert np.array_equal(learner.components, V)


def test_the_callers_array_is_neither_changed_nor_kept(make):
    learner, other = make(), make()
    buffer = np.empty(learner.dim)
    for x in stream(learner, 10)[:3]:
        buffer[:] = x
        learner.update(buffer)
        assert np.array_equal(buffer, x)
        buffer[:] = 7.0
        other.update(x.astype(np.float64).tolist())
        assert np.array_equal(learner.decision, other.decision)


def test_names(make):
    learner = make()
    text = repr(learner.partial_fit(np.zeros((3, learner.dim))))
    assert text.startswith(f"{type(learner).__name__}({learner.dim}, rank={learner.rank}")
    assert text.endswith("3 rounds played)")
    given = inspect.signature(type(learner)).parameters
    assert all(hasattr(learner, name) for name in given)
    assert [name for name, one in given.items() if one.kind is one.POSITIONAL_OR_KEYWORD][:2] == ["dim", "rank"]
    with pytest.raises(
        TypeError, match=f"{type(learner).__name__} got an unexpected keyword argument 'instance_bound'"
    ):
        type(learner)(5, 2, instance_bound=1.0)


@pytest.mark.parametrize("kind", ["number", "generator", "none"])
def test_a_clone_is_fresh_and_draws_the_same(make, kind):
    rng = {"number": 7, "generator": np.random.default_rng(7), "none": None}[kind]
    learner = make(rng)
    instances = stream(learner, 20)
    whole = play(learner, instances)
    asked = None if kind != "generator" else rng.bit_generator.state
    twin = learner.clone()
    assert twin.rounds == twin.eigendecompositions == 0
    assert repr(twin) == repr(learner).replace("20 rounds", "0 rounds")
    assert same(play(twin, instances), whole)
    assert twin.rng is learner.rng
    assert same(play(twin.clone(), instances), whole)
    if kind == "generator":
        assert rng.bit_generator.state == asked


@pytest.mark.parametrize("kind", [EfficientPCA, AdaptivePCA])
def test_a_cover_that_is_not_of_its_round_is_refused(kind):
    """Slots that are too few for the round would be written past their end, so would experts of another round."""
    learner = kind(3, 1, rng=0)
    play(learner, stream(learner, 12))
    before = learner.state()

    def at(rounds, born):
        clock = before["clock"].copy()
        clock[0] = rounds
        return before | {"clock": clock, "born": np.array(born, dtype=np.int64)}

    assert before["born"].tolist() == [13, 0, 12, 8, 0, 0, 0, 0]
    late = 2**10 - 2
    hostile = {
        "8 levels, and round 1023 needs 10": at(late, [(late + 1) >> level << level for level in range(8)]),
        "8 levels, and round 256 needs 9": at(255, [256] + [0] * 7),
        "8 levels, and round 4611686018427387905 needs 63": at(2**62, [2**62 + 1] + [0] * 7),
        "births": at(12, [13, 0, 12, 8, 0, 0, 0, 13]),
        "births,": at(13, before["born"]),
        "its .*births": at(12, [-13, 0, 12, 8, 0, 0, 0, 0]),
        "'Z' must be|'points' must be": at(12, [13, 0, 12, 8]),
        "it has 0 levels": at(12, []),
        "it has 64 levels": at(12, [0] * 64),
    }
    for message, state in hostile.items():
        with refused(learner, message, StateError):
            learner.restore(state)


# ----------------------------------------------------------------------------------------------------------- descent


def test_descent_is_gradient_descent_on_the_fantope():
    d, k, T, G = 5, 2, 60, 2.0
    learner = DescentPCA(d, k, T, gradient_bound=G, rng=0)
    assert learner.step_size == pytest.approx(math.sqrt(k * (d - k) / (d * T)) / G, rel=1e-15)
    twin = tw.OGD(Fantope(d, k), step_size=learner.step_size)
    for x in stream(learner, T):
        np.testing.assert_allclose(learner.decision, twin.decision, atol=1e-11)
        learner.update(x)
        twin.update(-(np.outer(x, x) if x.ndim == 1 else x))
    assert learner.eigendecompositions == T
    with pytest.warns(HorizonWarning, match="tuned for 60 rounds"):
        learner.update(np.zeros(d))


@pytest.mark.parametrize("seed", range(5))
def test_descent_keeps_its_static_bound(seed):
    """G sqrt(k (d - k) T/d); without the root in the step, as printed, it does not."""
    d, k, T = 6, 2, 400
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((T, d)) * np.array([1.0, 0.9, 0.8, 0.7, 0.3, 0.2])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    bound = math.sqrt(k * (d - k) * T / d)
    best = best_subspace(rows, k).loss
    learner = DescentPCA(d, k, T, rng=0)
    assert sum(learner.update(x) for x in rows) - best <= bound
    hard = np.eye(d)[np.repeat([0, 1], T // 2)]  # first one direction, then another
    hard[: T // 2, 2], hard[:, 3] = 0.0, 0.0
    printed = DescentPCA(d, k, T, step_size=k * (d - k) / (d * T), rng=0)
    assert sum(printed.update(x) for x in hard) - best_subspace(hard, k).loss > bound


# ---------------------------------------------------------------------------------------------------------- adaptive


def test_adaptive_is_a_cover_of_descents_on_the_fantope():
    d, k, G, T = 5, 2, 2.0, 200
    learner = AdaptivePCA(d, k, gradient_bound=G, rng=0)
    F = Fantope(d, k)

    def expert(length):
        return tw.experts.Descent(F, math.sqrt(k * (d - k) / (d * length)) / G)

    twin = tw.Cover(F, expert, meta=tw.metas.AdaptMLProd(G * F.diameter))
    for x in stream(learner, T):
        np.testing.assert_allclose(learner.decision, twin.decision, atol=1e-10)
        learner.update(x)
        twin.update(-(np.outer(x, x) if x.ndim == 1 else x))
    assert learner.born.tolist() == twin.born.tolist()
    np.testing.assert_allclose(learner.weights, twin.weights, rtol=1e-8)


def test_adaptive_takes_an_eigendecomposition_for_every_expert_but_the_newborn(monkeypatch):
    learner = AdaptivePCA(4, 1, rng=0)
    real, calls = np.linalg.eigh, []
    monkeypatch.setattr(np.linalg, "eigh", lambda A: calls.append(1) or real(A))
    for t, x in enumerate(stream(learner, 200), start=1):
        assert len(calls) == sum(bin(s).count("1") - 1 for s in range(1, t + 1))
        learner.update(x)
    assert learner.eigendecompositions == len(calls)
    before = len(calls)
    _ = learner.projection, learner.components
    assert len(calls) == before + 1  # a mixture of experts has an eigenbasis of its own


def test_adaptive_and_efficient_lose_about_the_same():
    """One eigendecomposition a round against many."""
    rng = np.random.default_rng(0)
    rows = []
    for t in range(1500):
        if t % 300 == 0:
            A = np.linalg.qr(rng.standard_normal((8, 2)))[0]
        rows.append(A @ rng.standard_normal(2) + 0.05 * rng.standard_normal(8))
    rows = np.array(rows) / np.linalg.norm(rows, axis=1, keepdims=True)
    many, one = AdaptivePCA(8, 2, rng=0), EfficientPCA(8, 2, rng=0)
    paid = [sum(learner.update(x) for x in rows) for learner in (many, one)]
    assert 0.8 < paid[1] / paid[0] < 1.25
    assert one.eigendecompositions == 1500 < many.eigendecompositions / 3


# ---------------------------------------------------------------------------------------------------- Yuan, Lamperski


def test_yuan_lamperski_by_matrix_functions():
    """W by matrix logarithm and exponential, capped in its own eigenbasis."""
    d, k, T, G = 5, 2, 60, 2.0
    m = d - k
    learner = YuanLamperskiPCA(d, k, T, gradient_bound=G, rng=0)
    alpha = 1 / (T * m + 1)
    eta = math.log(1 + math.sqrt(2 * (m * math.log(d * (1 + m * T)) + 1) / T))
    assert (learner.share, learner.rate) == (pytest.approx(alpha), pytest.approx(eta))
    W = np.eye(d) / d
    for x in stream(learner, T):
        np.testing.assert_allclose(learner.decision, np.eye(d) - m * W, atol=1e-9)
        learner.update(x)
        V = scipy.linalg.expm(scipy.linalg.logm(W) - eta / G * (np.outer(x, x) if x.ndim == 1 else x))
        V = (V + V.T) / (2 * np.trace(V))
        w, U = np.linalg.eigh((1 - alpha) * V + alpha / d * np.eye(d))
        W = (U * brute_cap(w, 1 / m)) @ U.T
    assert learner.eigendecompositions == T


def brute_cap(w, cap):
    """Try every number of capped entries, fewest first."""
    order = np.argsort(-w)
    for i in range(w.size):
        out = w.copy()
        out[order[:i]] = cap
        out[order[i:]] *= (1 - i * cap) / w[order[i:]].sum()
        if out.max() <= cap + 1e-12:
            return out
    raise AssertionError


def test_capping_keeps_the_sum_and_the_order():
    rng = np.random.default_rng(0)
    for _ in range(300):
        d = int(rng.integers(2, 9))
        m = int(rng.integers(1, d))
        w = np.sort(rng.dirichlet(np.full(d, rng.choice([0.1, 1.0, 10.0]))))[::-1] * 0.999 + 0.001 / d
        out = capped(w, 1 / m)
        np.testing.assert_allclose(out, brute_cap(w, 1 / m), atol=1e-12)
        assert out.sum() == pytest.approx(1.0)
        assert out.max() <= 1 / m
        assert (np.diff(out) <= 1e-15).all()
        assert out.min() > 0


def test_yuan_lamperski_follows_a_change_within_its_bound():
    """sqrt(2 L0 D0) + D0 on every interval, in units of G, with L0 = T (its Theorem 3)."""
    d, k, T = 4, 1, 600
    m = d - k
    D0 = m * math.log(d * (1 + m * T)) + 1
    rows = np.eye(d)[np.repeat([0, 1], T // 2)]
    learner = YuanLamperskiPCA(d, k, T, rng=0)
    losses = np.array([learner.update(x) for x in rows])
    for start, stop in itertools.combinations(range(0, T + 1, 20), 2):
        assert losses[start:stop].sum() - best_subspace(rows[start:stop], k).loss <= math.sqrt(2 * T * D0) + D0
    assert losses[-20:].mean() < 0.1


@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        (DescentPCA, {"horizon": 0}),
        (DescentPCA, {"step_size": -1.0}),
        (YuanLamperskiPCA, {"horizon": 0}),
        (YuanLamperskiPCA, {"loss_bound": 0.0}),
    ],
)
def test_contenders_refuse(kind, bad):
    with pytest.raises(InputError, match=next(iter(bad))):
        kind(**({"dim": 4, "rank": 1, "horizon": 10} | bad))


# --------------------------------------------------------------------------------------------------------------- Oja


def test_oja_finds_the_leading_subspace():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((4000, 6)) * np.array([2.0, 1.5, 0.3, 0.2, 0.1, 0.1])
    rows /= np.abs(rows).max() * math.sqrt(6)
    learner = OjaPCA(6, 2, step_size=1.0, rng=0).partial_fit(rows)
    assert learner.eigendecompositions == 0
    np.testing.assert_allclose(np.diag(learner.decision), [1, 1, 0, 0, 0, 0], atol=0.05)


# --------------------------------------------------------------------------------------------------------- hindsight


def test_the_best_subspace_beats_all_others():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((50, 5))
    best = best_subspace(rows, 2)
    V = best.components
    np.testing.assert_allclose(V @ V.T, np.eye(2), atol=1e-12)
    assert best.loss == pytest.approx(np.sum((rows - rows @ V.T @ V) ** 2), rel=1e-12)
    for _ in range(200):
        U = np.linalg.qr(rng.standard_normal((5, 2)))[0]
        assert np.sum((rows - rows @ U @ U.T) ** 2) >= best.loss
    assert best_subspace(rows[:1], 2).loss == pytest.approx(0.0, abs=1e-12)


def test_dyadic_regret_by_definition():
    rng = np.random.default_rng(0)
    rows, losses = rng.standard_normal((41, 4)), rng.uniform(0, 5, 41)
    found = {(one.start, one.stop): one for one in dyadic_regret(losses, rows, 2)}
    expected = [(i * n - 1, (i + 1) * n - 1) for n in (1, 2, 4, 8, 16) for i in range(1, 42 // n)]
    assert sorted(found) == sorted(expected)
    for (start, stop), one in found.items():
        paid = losses[start:stop].sum()
        assert one.paid == pytest.approx(paid)
        assert one.regret == pytest.approx(paid - best_subspace(rows[start:stop], 2).loss, abs=1e-9)
    assert all(one.stop - one.start >= 8 for one in dyadic_regret(losses, rows, 2, shortest=8))


@pytest.mark.parametrize("rank", [0, 4, 1.5])
def test_hindsight_refuses(rank):
    with pytest.raises(InputError, match="rank"):
        best_subspace(np.ones((3, 4)), rank)
    with pytest.raises(InputError, match="rank"):
        list(dyadic_regret(np.ones(3), np.ones((3, 4)), rank))
    with pytest.raises(InputError, match="losses"):
        list(dyadic_regret(np.ones(2), np.ones((3, 4)), 1))
