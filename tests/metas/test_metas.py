"""Meta-learners for experts that come and go: worked numbers, equality with plain twins, and what their proofs use."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tw
from tests.twins import adaptive as ref
from tests.worlds import built
from thalweg._kernels.jit import kernel
from thalweg._kernels.parts import admit, clear, feed, fits, weigh
from thalweg.algorithms import thresholds
from thalweg.errors import InputError
from thalweg.metas.ada_normal_hedge import AdaNormalHedge, log_potential
from thalweg.metas.adapt_ml_prod import AdaptMLProd
from thalweg.metas.coin_betting import CoinBetting
from thalweg.metas.hedge import Hedge
from thalweg.metas.leading_history import LeadingHistory
from thalweg.metas.prod import Prod

PROD, NORMAL, COIN, HEDGE, HISTORY, RATED = AdaptMLProd, AdaNormalHedge, CoinBetting, Hedge, LeadingHistory, Prod
METAS = {"Adapt-ML-Prod": PROD, "AdaNormalHedge": NORMAL, "coin betting": COIN, "Hedge": HEDGE}
METAS |= {"leading history": HISTORY, "Prod": RATED}
TWINS = {PROD: ref.AdaptMLProd, NORMAL: ref.AdaNormalHedge, COIN: ref.CoinBetting, HEDGE: lambda: ref.Hedge(0.3)}
TWINS |= {HISTORY: lambda: ref.LeadingHistory(0.3), RATED: lambda: ref.Prod(lambda J: min(0.5, 2 ** (-J[1] / 2)))}

seeds = st.integers(0, 2**32 - 1)
metas = st.sampled_from(list(METAS.values()))


def near(values):
    return pytest.approx(values, rel=1e-6)


@kernel
def compiled_feed(m, c, n, born, losses):
    feed(m, c, 0, n, born, 0.0, losses, 0.0)


@kernel
def compiled_weigh(m, c, n, born, p):
    weigh(m, c, 0, n, born, p)


def describe(kind, observed=False):
    """A meta-learner whose range is 1, or observed."""
    if kind is HEDGE:
        return Hedge(rate=0.3)
    if kind is HISTORY:
        return LeadingHistory(0.3, 1.0)
    return kind("observed" if observed else 1.0)


class Arena:
    """One group of K members; they are admitted and dismissed by hand. Fed and weighed by compiled code."""

    def __init__(self, kind, slots=8, observed=False):
        self.m, self.c = built(kind.plan([describe(kind, observed)], [slots]))
        clear(self.m, self.c, 0)
        self.born = np.zeros(slots, dtype=np.int64)

    def admit(self, slot, index):
        self.born[slot] = index
        admit(self.m, self.c, 0, slot, index)

    def dismiss(self, slot):
        self.born[slot] = 0

    @property
    def S(self):
        """What is known of each member, a row each, in the order of the state."""
        return np.stack([array[0] for array in self.m if array.ndim == 2], axis=1)

    @property
    def unit(self):
        return float(self.m.units[0])

    @unit.setter
    def unit(self, B):
        self.m.units[0] = B

    @property
    def awake(self):
        return np.flatnonzero(self.born)

    @property
    def weights(self):
        p = np.full(len(self.born), np.nan)
        compiled_weigh(self.m, self.c, len(p), self.born, p)
        return p

    def feed(self, r):
        """r (K,): what stands in empty slots must not matter."""
        compiled_feed(self.m, self.c, len(self.born), self.born, -np.array(r, dtype=float))


def lone(meta, index=1, observed=False):
    arena = Arena(meta, slots=1, observed=observed)
    arena.admit(0, index)
    return arena


def come_and_go(arena, rng, rounds, twin=None):
    """Yield once a round, with somebody awake. Experts appear and disappear at random; indices only grow."""
    index = 0
    for _ in range(rounds):
        for slot in range(len(arena.born)):
            if arena.born[slot] and rng.random() < 0.05:
                arena.dismiss(slot)
            elif not arena.born[slot] and rng.random() < 0.2:
                index += 1
                arena.admit(slot, index)
                if twin is not None:
                    twin.admit((index, slot))
        if not arena.awake.size:
            index += 1
            arena.admit(0, index)
            if twin is not None:
                twin.admit((index, 0))
        yield [(int(arena.born[slot]), int(slot)) for slot in arena.awake]


def feedback(p, awake, rng):
    """r_k = sum_j p_j l_j - l_k for losses in [0, 1], with noise in the empty slots."""
    losses = rng.uniform(size=len(p)) ** rng.integers(1, 4)
    r = rng.uniform(-1, 1, size=len(p))
    r[awake] = p[awake] @ losses[awake] - losses[awake]
    return r


# ---------------------------------------------------------------------------------------------------- worked numbers


@pytest.mark.parametrize(
    ("R", "C", "w"), [(0, 0, 0.197806213), (1, 1, 0.473867021), (-0.5, 0.5, 0.028563872), (3, 5, 0.591788293)]
)
def test_ada_normal_hedge_numbers(R, C, w):
    assert math.exp(log_potential(float(R), float(C))) == near(w)
    assert ref.normal_hedge_weight(R, C) == near(w)


def test_ada_normal_hedge_weighs_a_newborn_by_its_first_number():
    assert math.exp(log_potential(0.0, 0.0)) == pytest.approx((math.exp(1 / 3) - 1) / 2, rel=1e-14)


@pytest.mark.parametrize("C", [1.0, 2.5, 40.0])
def test_ada_normal_hedge_is_silent_about_experts_one_behind(C):
    for R in (-1.0, -1.5, -C):
        assert log_potential(R, C) == -math.inf
        assert ref.normal_hedge_weight(R, C) == 0
    assert log_potential(-0.999, C) > -math.inf


@given(R=st.floats(-0.9, 40), more=st.floats(0, 100))
@settings(max_examples=200)
def test_log_potential_is_the_log_of_the_weight(R, more):
    C = abs(R) + more
    expected = ref.normal_hedge_weight(R, C)
    assert math.exp(log_potential(R, C)) == pytest.approx(expected, rel=1e-9)


def test_adapt_ml_prod_numbers():
    arena = lone(PROD)
    assert arena.S[0] == pytest.approx([0.0, 0.0, 0.5, math.log(3)])
    for r, log_weight in ((0.5, 0.223143551), (-0.2, 0.117783036), (0.1, 0.166573200)):
        arena.feed([r])
        assert arena.S[0, 0] == near(log_weight)
        assert arena.S[0, 2] == 0.5
    assert arena.S[0, 1] == near(0.30)


def test_adapt_ml_prod_numbers_when_the_rate_falls():
    """The factor has the old rate in it, the power is new over old."""
    arena, twin = lone(PROD), ref.AdaptMLProd()
    twin.admit((1, 1))
    for _ in range(5):
        arena.feed([1.0])
        twin.feed({(1, 1): 1.0})
    assert arena.S[0] == near([1.738917491, 5.0, 0.427904251, math.log(3)])
    assert math.log(twin.w[1, 1]) == near(1.738917491)
    # With the new rate in the factor it would end somewhere else.
    log_weight, V, eta = 0.0, 0.0, 0.5
    for _ in range(5):
        V += 1.0
        new = min(0.5, math.sqrt(math.log(3) / (1 + V)))
        log_weight = new / eta * log_weight + math.log1p(new)
        eta = new
    assert abs(log_weight - arena.S[0, 0]) > 0.005


@pytest.mark.parametrize("index", [1, 2, 7, 100, 2**20])
def test_a_newborn_of_adapt_ml_prod_has_rate_one_half(index):
    arena = lone(PROD, index)
    assert arena.S[0] == pytest.approx([0.0, 0.0, 0.5, math.log(1 + 2 * index)], rel=1e-14)


def test_krichevsky_trofimov_numbers():
    arena, twin = lone(COIN), ref.CoinBetting()
    J = (1, 1)
    twin.admit(J)
    bets, fractions, wealths = [], [], []
    for g in (0.5, 0.5, -0.3):
        z, log_wealth, n, _ = arena.S[0]
        fractions.append(z / (n + 1))
        bets.append(z / (n + 1) * math.exp(log_wealth))
        assert twin.bet(J) == pytest.approx(bets[-1], rel=1e-14)
        arena.feed([g])
        twin.feed({J: g})
        wealths.append(math.exp(arena.S[0, 1]))
        assert twin.W[J] == pytest.approx(wealths[-1], rel=1e-14)
    assert fractions == near([0.0, 0.25, 1 / 3])
    assert bets == near([0.0, 0.25, 0.375])
    assert wealths == near([1.0, 1.125, 1.0125])


def test_a_bettor_without_a_bet_hears_only_what_speaks_for_the_expert():
    arena = lone(COIN)
    for g in (-0.4, -1.0, 0.0):
        arena.feed([g])
    assert arena.S[0, :3] == pytest.approx([0.0, 0.0, 3.0])
    arena.feed([0.4])
    arena.feed([-0.2])  # now it bets, so now it hears
    assert arena.S[0, :3] == pytest.approx([0.2, math.log1p(-0.2 * 0.4 / 5), 5.0])


@pytest.mark.parametrize("index", [1, 2, 3, 4, 7, 8, 1000, 1023, 1024, 1025, 2**30 - 1, 2**30])
def test_prior_of_coin_betting(index):
    arena = lone(COIN, index)
    prior = 1 / (index**2 * (1 + index.bit_length() - 1))
    assert math.exp(arena.S[0, 3]) == pytest.approx(prior, rel=1e-12)
    twin = ref.CoinBetting()
    twin.admit((index, index))
    assert twin.pi[index, index] == pytest.approx(prior, rel=1e-14)


def test_thresholds_of_theorem_4():
    settings = {"T": 1000, "G": 1.0, "L": 1.0, "R": 1.0, "delta": 1.0}
    assert thresholds.mu(1000) == near(0.898018464)
    assert ref.mu(1000) == near(0.898018464)
    printed = [thresholds.adaptive_paper(m, **settings) for m in (1, 2, 10)]
    derived = [thresholds.adaptive_proof(m, **settings) for m in (1, 2, 10)]
    assert printed == near([1073.5377, 1186.9410, 1505.5298])
    assert derived == near([2132.1233, 2631.8618, 3896.3504])


@given(
    m=st.integers(1, 10**6),
    T=st.integers(1, 10**7),
    G=st.floats(1e-3, 1e3),
    L=st.floats(1e-3, 1e3),
    R=st.floats(1e-3, 1e3),
    delta=st.floats(1e-6, 1e3),
)
@settings(max_examples=100)
def test_thresholds_equal_their_formulas_and_grow(m, T, G, L, R, delta):
    args = {"T": T, "G": G, "L": L, "R": R, "delta": delta}
    printed, derived = thresholds.adaptive_paper(m, **args), thresholds.adaptive_proof(m, **args)
    assert printed == pytest.approx(ref.printed_threshold(m, **args), rel=1e-12)
    assert derived == pytest.approx(ref.derived_threshold(m, **args), rel=1e-12)
    assert thresholds.adaptive_paper(m + 1, **args) > printed
    assert thresholds.adaptive_proof(m + 1, **args) > derived
    # (a + b + c)^2 <= 3 (a^2 + b^2 + c^2) turns the derived one into the printed one with 1512 for 168 and 12 for 6.
    expanded = printed + (1512 - 168) * R**2 * L * math.log(1 + 2 * m) + 6 * R * math.sqrt(delta)
    assert printed < derived <= expanded * (1 + 1e-12)


@pytest.mark.parametrize(("name", "formula"), [("paper", ref.printed_threshold), ("proof", ref.derived_threshold)])
def test_thresholds_of_the_learner_have_the_radius_of_the_surrogate_in_them(name, formula):
    domain = tw.domains.Ellipsoid([1.0, 4.0], bound=4.0)
    for surrogate, R in ((None, 2.0), (tw.domains.Ball(2, radius=4.0), 4.0)):
        learner = tw.EfficientAdaptive(domain, 500, 3.0, 0.7, threshold=name, delta=0.3, surrogate=surrogate)
        first = learner.inner.state()["settings.thresholds"][0]
        assert first == pytest.approx(formula(1, 500, 3.0, 0.7, R, 0.3), rel=1e-12)
        assert [learner.inner.threshold(m) for m in (2, 9)] == pytest.approx(
            [formula(m, 500, 3.0, 0.7, R, 0.3) for m in (2, 9)], rel=1e-12
        )


def test_the_threshold_of_sacs_is_twenty_l_d_squared_and_a_bit():
    learner = tw.SACS(tw.domains.Ball(2, radius=1.5), loss_bound=4.0, smoothness=0.7, delta=0.3, gradients="own")
    expected = 20 * 0.7 * 9 + 2 * 3 * math.sqrt(0.6)
    assert learner.state()["settings.thresholds"][0] == pytest.approx(expected, rel=1e-14)
    assert learner.threshold(17) == pytest.approx(expected, rel=1e-14)


# ----------------------------------------------------------------------------------------------- equal to plain twins


@given(seed=seeds, meta=metas, rounds=st.integers(1, 120))
@settings(max_examples=30)
def test_kernels_equal_the_twins(seed, meta, rounds):
    rng = np.random.default_rng(seed)
    arena, twin = Arena(meta), TWINS[meta]()
    for awake in come_and_go(arena, rng, rounds, twin):
        p = arena.weights
        np.testing.assert_allclose(p[arena.awake], twin.weights(awake), rtol=1e-9, atol=1e-13)
        r = feedback(p, arena.awake, rng)
        arena.feed(r)
        twin.feed({J: r[J[1]] for J in awake})


@given(seed=seeds, rounds=st.integers(1, 120), low=st.floats(-8, 0), high=st.floats(0, 8))
@settings(max_examples=30)
def test_observed_range_equals_the_twin(seed, rounds, low, high):
    """The range grows by many orders of magnitude, or hardly at all."""
    rng = np.random.default_rng(seed)
    arena, twin = Arena(PROD, observed=True), ref.AdaptMLProd(observed=True)
    sizes = 10.0 ** np.sort(rng.uniform(low, high, size=rounds))
    for size, awake in zip(sizes, come_and_go(arena, rng, rounds, twin), strict=True):
        p = arena.weights
        np.testing.assert_allclose(p[arena.awake], twin.weights(awake), rtol=1e-8, atol=1e-13)
        r = size * feedback(p, arena.awake, rng)
        arena.feed(r)
        twin.feed({J: r[J[1]] for J in awake})
        assert arena.unit == pytest.approx(twin.B, rel=1e-14)


@given(seed=seeds, kind=metas, rounds=st.integers(1, 40))
@settings(max_examples=20)
def test_where_nobody_sleeps_there_need_be_no_list_of_the_awake(seed, kind, rounds):
    """A pool passes None for `born`, and the loss of the combination as `base`."""
    rng = np.random.default_rng(seed)
    arena, pool = Arena(kind, slots=5), Arena(kind, slots=5)
    for slot in range(5):
        arena.admit(slot, slot + 1)
        pool.admit(slot, slot + 1)
    p = pool.weights
    for _ in range(rounds):
        losses = rng.uniform(0, 1, 5)
        base = float(arena.weights @ losses)
        arena.feed(base - losses)
        feed(pool.m, pool.c, 0, 5, None, base, losses, 0.0)
        weigh(pool.m, pool.c, 0, 5, None, p)
        np.testing.assert_allclose(p, arena.weights, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("kind", METAS.values(), ids=METAS)
def test_groups_do_not_touch_each_other(kind):
    """Two groups of different sizes in one part are two parts."""
    rng = np.random.default_rng(0)
    m, c = built(kind.plan([describe(kind)] * 2, [3, 5]))
    alone = [Arena(kind, slots=n) for n in (3, 5)]
    for k, arena in enumerate(alone):
        clear(m, c, k)
        for slot in range(len(arena.born)):
            arena.admit(slot, slot + 1)
            admit(m, c, k, slot, slot + 1)
        weigh(m, c, k, len(arena.born), None, np.empty(len(arena.born)))
    for t in range(30):
        for k, arena in enumerate(alone):
            if (t + k) % 3 == 0:
                continue  # one of them sits this round out
            r = feedback(arena.weights, arena.awake, rng)
            arena.feed(r)
            feed(m, c, k, len(r), None, 0.0, -r, 0.0)
            p = np.empty(len(r))
            weigh(m, c, k, len(r), None, p)
            np.testing.assert_allclose(p, arena.weights, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("observed", [False, True])
@pytest.mark.parametrize("kind", METAS.values(), ids=METAS)
def test_feedback_beyond_the_range_does_not_fit(kind, observed):
    arena = Arena(kind, slots=3, observed=observed and kind is PROD)
    arena.admit(0, 1)
    for r, within in ((1.0, True), (-1.0, True), (1.0 + 1e-10, True), (1.01, False), (-1.01, False), (np.nan, False)):
        anything = kind is HEDGE or (observed and kind is PROD)
        assert fits(arena.m, arena.c, 0, 3, arena.born, np.array([r, 5.0, np.nan])) == (within or anything)


def test_a_rate_that_adapts_multiplies_the_whole_sum():
    """epsilon_t = sqrt(ln N/(1 + R^2 sum of squares)), of the squares before the round."""
    rng = np.random.default_rng(1)
    m, c = built(Hedge.plan([Hedge(radius=2.0, prior=[1.0, 2.0, 3.0])], [3]))
    A, q, p = np.zeros(3), 0.0, np.empty(3)
    for _ in range(50):
        weigh(m, c, 0, 3, None, p)
        expected = np.array([1, 2, 3]) * np.exp(-math.sqrt(math.log(3) / (1 + 4 * q)) * A)
        np.testing.assert_allclose(p, expected / expected.sum(), rtol=1e-12)
        losses, base, square = rng.uniform(0, 1, 3), rng.uniform(), rng.uniform(0, 0.2)
        feed(m, c, 0, 3, None, base, losses, square)
        A, q = A + losses - base, q + square


# --------------------------------------------------------------------------------------------------- what weights are


@given(seed=seeds, meta=metas, rounds=st.integers(1, 80), observed=st.booleans())
@settings(max_examples=40)
def test_weights_are_a_distribution_over_the_awake(seed, meta, rounds, observed):
    rng = np.random.default_rng(seed)
    arena = Arena(meta, observed=observed and meta == PROD)
    for _ in come_and_go(arena, rng, rounds):
        p = arena.weights
        assert p.sum() == pytest.approx(1.0, abs=1e-12)
        assert (p >= 0).all()
        assert (p[arena.born == 0] == 0).all()
        if meta in (PROD, HEDGE, HISTORY, RATED):
            assert (p[arena.awake] > 0).all()
        arena.feed(feedback(p, arena.awake, rng))


@pytest.mark.parametrize("meta", METAS.values(), ids=METAS)
def test_the_state_of_those_asleep_is_frozen(meta):
    rng = np.random.default_rng(0)
    arena = Arena(meta)
    for _ in come_and_go(arena, rng, 200):
        asleep = arena.born == 0
        before = arena.S[asleep].copy()
        arena.feed(feedback(arena.weights, arena.awake, rng))
        np.testing.assert_array_equal(arena.S[asleep], before)


@pytest.mark.parametrize("meta", METAS.values(), ids=METAS)
def test_equal_experts_count_by_their_prior(meta):
    arena = Arena(meta, slots=4)
    for slot, index in enumerate((1, 2, 5)):
        arena.admit(slot, index)
    priors = {COIN: [1, 1 / (4 * 2), 1 / (25 * 3)], HISTORY: [2, 2, 1]}  # 1; 1/2, 1/2; 4/5 of that, and 1/5
    prior = np.array(priors.get(meta, [1, 1, 1]))
    for _ in range(3):
        np.testing.assert_allclose(arena.weights, [*(prior / prior.sum()), 0.0], rtol=1e-13)
        arena.feed(np.zeros(4))


@pytest.mark.parametrize("meta", [NORMAL, COIN], ids=["AdaNormalHedge", "coin betting"])
def test_where_nobody_is_worth_a_weight_all_awake_count_by_their_prior(meta):
    arena = Arena(meta, slots=5)
    for slot, index in ((0, 3), (2, 4), (4, 9)):
        arena.admit(slot, index)
    for _ in range(4):
        arena.feed(np.full(5, -1.0))
    if meta == NORMAL:
        assert [log_potential(*arena.S[k, :2]) for k in arena.awake] == [-math.inf] * 3
        prior = np.array([1.0, 0.0, 1.0, 0.0, 1.0])
    else:
        prior = np.array([1 / (9 * 2), 0.0, 1 / (16 * 3), 0.0, 1 / (81 * 4)])
    np.testing.assert_allclose(arena.weights, prior / prior.sum(), rtol=1e-12)
    arena.admit(1, 10)  # a newborn of AdaNormalHedge has weight, one of the coin has not
    if meta == NORMAL:
        np.testing.assert_array_equal(arena.weights, [0, 1, 0, 0, 0])


# --------------------------------------------------------------------------------------------------- log-space safety


@pytest.mark.parametrize("meta", METAS.values(), ids=METAS)
def test_ten_thousand_rounds_of_one_winner(meta):
    """exp(R^2/(3C)) with R = C = 10^4 is exp(3334): only its logarithm is a number."""
    arena = Arena(meta, slots=4)
    for slot in range(3):
        arena.admit(slot, slot + 1)
    assert arena.weights.sum() == pytest.approx(1.0)
    for _ in range(10_000):
        arena.feed([1.0, -1.0, 0.001, np.nan])
    assert np.isfinite(arena.S[:3]).all()
    p = arena.weights
    assert np.isfinite(p).all()
    assert p.sum() == pytest.approx(1.0, abs=1e-12)
    assert p[0] > 1 - 1e-9
    if meta == NORMAL:
        assert arena.S[0, :2] == pytest.approx([1e4, 1e4])
        above, below = 10001**2 / (3 * 10001), 9999**2 / (3 * 10001)
        expected = above + math.log1p(-math.exp(below - above)) - math.log(2)
        assert log_potential(1e4, 1e4) == pytest.approx(expected, rel=1e-12)
    arena.admit(3, 4)  # a newborn among giants
    assert np.isfinite(arena.weights).all()
    for _ in range(2_000):  # and the winner falls
        arena.feed([-1.0, 1.0, 0.5, 0.0])
    assert np.isfinite(arena.S).all()
    assert np.isfinite(arena.weights).all()
    assert arena.weights.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("observed", [False, True])
def test_ten_thousand_rounds_of_the_worst_feedback_leave_adapt_ml_prod_finite(observed):
    """r = -1 in every round is what a normaliser of half the range could not survive: 1 + eta r would be 0."""
    arena = Arena(PROD, slots=2, observed=observed)
    arena.admit(0, 1)
    arena.admit(1, 2)
    for _ in range(10_000):
        arena.feed([-1.0, 1.0])
        assert np.isfinite(arena.S).all()
    assert arena.S[0, 0] < -50
    assert 0 < arena.weights[0] < 1e-9


# ------------------------------------------------------------------------------------------------ what the proofs use


@given(seed=seeds, rounds=st.integers(1, 150), observed=st.booleans())
@settings(max_examples=40)
def test_weighted_feedback_of_adapt_ml_prod_sums_to_zero(seed, rounds, observed):
    """sum_i eta_i w_i r_i = 0 when the combination the r compare with is the one the weights make."""
    rng = np.random.default_rng(seed)
    arena = Arena(PROD, observed=observed)
    for _ in come_and_go(arena, rng, rounds):
        awake = arena.awake
        r = feedback(arena.weights, awake, rng)
        raw = np.exp(arena.S[awake, 0] - arena.S[awake, 0].max()) * arena.S[awake, 2]
        assert abs(raw @ r[awake]) <= 1e-12 * raw.sum()
        arena.feed(r)


@given(seed=seeds, rounds=st.integers(1, 150))
@settings(max_examples=40)
def test_potential_of_adapt_ml_prod(seed, rounds):
    """The total weight of all experts ever born is at most their number plus sum (eta/eta' - 1)/e.

    x^(a) <= x + (1 - a)/(a e) for 0 < a <= 1, so w' <= w (1 + eta r) + (eta/eta' - 1)/e, and sum eta w r = 0.
    This is where a mixture of old and new rates, or a newborn that is judged by the round before, would show.
    """
    rng = np.random.default_rng(seed)
    arena, retired, slack, births = Arena(PROD), {}, 0.0, 0
    for awake in come_and_go(arena, rng, rounds):
        births = max(births, max(index for index, _ in awake))
        before = arena.S[:, 2].copy()
        arena.feed(feedback(arena.weights, arena.awake, rng))
        slack += np.sum(before[arena.awake] / arena.S[arena.awake, 2] - 1) / math.e
        retired |= {index: math.exp(arena.S[slot, 0]) for index, slot in awake}
        assert sum(retired.values()) <= births + slack + 1e-9


@given(seed=seeds, rounds=st.integers(1, 200), convex=st.floats(0, 0.5))
@settings(max_examples=40)
def test_bets_of_coin_betting_never_gain_together(seed, rounds, convex):
    """sum_J pi_J g_J w_J <= 0 if the combination pays no more than the weighted losses; so wealth is never created."""
    rng = np.random.default_rng(seed)
    arena, retired = Arena(COIN), {}
    for awake in come_and_go(arena, rng, rounds):
        slots = arena.awake
        p = arena.weights
        r = feedback(p, slots, rng)
        r[slots] = np.clip(r[slots] - convex * rng.uniform(), -1, 1)  # f(x_t) < sum_J p_J f(x_J)
        z, log_wealth, n, log_prior = arena.S[slots].T
        bet = z / (n + 1) * np.exp(log_wealth)
        arena.feed(r)
        gain = arena.S[slots, 0] - z
        assert np.exp(log_prior) @ (gain * bet) <= 1e-12
        np.testing.assert_allclose(np.exp(arena.S[slots, 1]), np.exp(log_wealth) + gain * bet, rtol=1e-10)
        retired |= {J: (math.exp(arena.S[J[1], 3]), math.exp(arena.S[J[1], 1])) for J in awake}
        assert sum(pi * W for pi, W in retired.values()) <= sum(pi for pi, _ in retired.values()) + 1e-9


@given(seed=seeds, rounds=st.integers(1, 150))
@settings(max_examples=40)
def test_potential_of_ada_normal_hedge(seed, rounds):
    """Phi(R + r, C + |r|) <= Phi(R, C) + w(R, C) r + (3/2)|r|/(C + 1) and sum w r <= 0 [L15, Lemma 2].

    So the sum of Phi over all experts ever born is at most sum_i (1 + (3/2)(1 + ln(1 + C_i))).
    """
    rng = np.random.default_rng(seed)
    arena, seen = Arena(NORMAL), {}
    for awake in come_and_go(arena, rng, rounds):
        arena.feed(feedback(arena.weights, arena.awake, rng))
        seen |= {index: tuple(arena.S[slot, :2]) for index, slot in awake}
        total = sum(ref.phi(R, C) for R, C in seen.values())
        assert total <= sum(1 + 1.5 * (1 + math.log1p(C)) for _, C in seen.values()) + 1e-9


# ------------------------------------------------------------------------------------------------- the observed range


@given(seed=seeds, rounds=st.integers(1, 100), exponent=st.floats(-6, 6))
@settings(max_examples=30)
def test_a_constant_observed_range_is_the_bound_in_other_units(seed, rounds, exponent):
    B = 10.0**exponent
    rng = np.random.default_rng(seed)
    bound, observed = Arena(PROD), Arena(PROD)
    observed.unit = B  # known from the start, never exceeded
    rooms = (come_and_go(bound, np.random.default_rng(seed), rounds), come_and_go(observed, rng, rounds))
    other = np.random.default_rng(seed + 1)
    for _ in zip(*rooms, strict=True):
        p = bound.weights
        np.testing.assert_allclose(observed.weights, p, rtol=1e-9, atol=1e-15)
        r = feedback(p, bound.awake, other)
        bound.feed(r)
        observed.feed(B * r)
        scaled = observed.S * np.array([1, 1 / B**2, B, 1])
        np.testing.assert_allclose(scaled[bound.awake], bound.S[bound.awake], rtol=1e-9, atol=1e-12)


@given(seed=seeds, rounds=st.integers(1, 100), low=st.floats(-100, 0), high=st.floats(0, 100))
@settings(max_examples=40)
def test_a_growing_range_keeps_every_factor_above_one_half(seed, rounds, low, high):
    """With B the range after the round, eta <= 1/(2B) and |r| <= B, whatever happened before."""
    rng = np.random.default_rng(seed)
    arena = Arena(PROD, observed=True)
    sizes = 10.0 ** rng.uniform(low, high, size=rounds)
    for size, _ in zip(sizes, come_and_go(arena, rng, rounds), strict=True):
        awake = arena.awake
        p = arena.weights
        assert np.isfinite(p).all()
        r = size * feedback(p, awake, rng)
        old = arena.S[awake].copy()
        unit = arena.unit
        arena.feed(r)
        assert arena.unit == max(unit, np.abs(r[awake]).max())
        assert np.isfinite(arena.S[awake]).all()
        if arena.unit == 0:
            continue
        for (log_weight, V, rate, gamma), new, gain in zip(old, arena.S[awake], r[awake], strict=True):
            moved = rate if arena.unit == unit else min(0.5 / arena.unit, math.sqrt(gamma / (arena.unit**2 + V)))
            assert 1 + moved * gain >= 0.5 - 1e-12
            expected = new[2] / moved * (log_weight * moved / rate + math.log1p(moved * gain))
            assert new[0] == pytest.approx(expected, rel=1e-9, abs=1e-12)
            assert new[2] <= moved * (1 + 1e-12)
        assert arena.weights.sum() == pytest.approx(1.0, abs=1e-12)


def test_before_any_feedback_nobody_is_ahead_and_zeros_change_nothing():
    arena = Arena(PROD, slots=3, observed=True)
    for slot, index in enumerate((4, 6, 7)):
        arena.admit(slot, index)
    for _ in range(3):
        np.testing.assert_allclose(arena.weights, [1 / 3] * 3, rtol=1e-14)
        arena.feed(np.zeros(3))
    assert arena.unit == 0
    arena.feed(np.array([0.02, -0.04, 0.0]))
    assert arena.unit == 0.04
    # eta = 1/(2B) = 12.5 until V is large: 1 + 12.5 * 0.02 = 1.25 and 1 - 12.5 * 0.04 = 0.5
    np.testing.assert_allclose(np.exp(arena.S[:, 0]), [1.25, 0.5, 1.0], rtol=1e-12)


def test_the_unit_of_an_observed_range_does_not_matter():
    runs = []
    for scale in (1.0, 1e-5, 1e7):
        rng = np.random.default_rng(3)
        arena, weights = Arena(PROD, observed=True), []
        for _ in come_and_go(arena, rng, 60):
            weights.append(arena.weights)
            r = feedback(weights[-1], arena.awake, rng) * rng.uniform(0.01, 1)
            arena.feed(scale * r)
        runs.append(np.array(weights))
    for one, two in itertools.pairwise(runs):
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("size", [1e-200, 1e-300, 1e-310, 5e-324])
def test_a_range_too_small_to_invert_does_no_harm(size):
    """1/(2B) overflows for the smallest numbers there are; larger feedback must find the weights as they were."""
    arena = Arena(PROD, slots=2, observed=True)
    arena.admit(0, 2)
    arena.admit(1, 3)
    arena.feed(np.array([size, -size]))
    assert not np.isnan(arena.weights).any()
    assert not np.isnan(arena.S).any()
    arena.feed(np.array([-0.5, 0.25]))  # eta = 1: factors 1/2 and 5/4; what came before is too small to matter
    assert np.isfinite(arena.S).all()
    np.testing.assert_allclose(arena.S[:, 0], np.log([0.5, 1.25]), rtol=1e-12)


# ------------------------------------------------------------------------------------ SAOL's Prod and leading histories


def test_rates_of_prod_fall_with_the_length_of_the_interval():
    """(1): 1/2 up to 4 rounds, then 1/sqrt of the length; a member counts its rate times its weight."""
    arena = Arena(RATED, slots=8)
    for slot in (0, 2, 4, 7):
        arena.admit(slot, 1)
    rates = np.array([1 / 2, 1 / 2, 1 / 4, 1 / math.sqrt(128)])
    np.testing.assert_allclose(arena.weights[[0, 2, 4, 7]], rates / rates.sum(), rtol=1e-14)
    arena.feed([1.0, 0, -1.0, 0, 0.5, 0, 0, -0.5])
    w = rates * (1 + rates * [1.0, -1.0, 0.5, -0.5])
    np.testing.assert_allclose(arena.weights[[0, 2, 4, 7]], w / w.sum(), rtol=1e-14)


@given(seed=seeds, rounds=st.integers(1, 120))
@settings(max_examples=25)
def test_weights_of_prod_never_exceed_the_number_of_members(seed, rounds):
    """sum_i p_i r_i = 0, so the sum of w of all that ever lived is at most their number: the proof of `bounds.prod`."""
    rng = np.random.default_rng(seed)
    arena = Arena(RATED)
    ever = 0
    for awake in come_and_go(arena, rng, rounds):
        ever = max(ever, *(index for index, _ in awake))
        assert np.exp(arena.S[arena.awake, 0]).sum() <= ever * (1 + 1e-12)
        arena.feed(feedback(arena.weights, arena.awake, rng))


def test_the_second_newcomer_takes_one_half_and_the_third_one_third():
    arena = Arena(HISTORY, slots=3)
    for slot, shares in enumerate(([1, 0, 0], [1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3])):
        arena.admit(slot, slot + 1)
        np.testing.assert_allclose(arena.weights, shares, rtol=1e-14)
    arena.feed([0.5, -0.5, 0.0])
    w = np.exp(0.3 * np.array([0.5, -0.5, 0.0]))
    np.testing.assert_allclose(arena.weights, w / w.sum(), rtol=1e-14)
    arena.dismiss(0)
    arena.admit(0, 4)  # the other two share what is left, 3/4
    np.testing.assert_allclose(arena.weights, [1 / 4, *(3 / 4 * w[1:] / w[1:].sum())], rtol=1e-14)


@given(seed=seeds, rounds=st.integers(1, 300))
@settings(max_examples=25)
def test_leading_histories_lose_at_most_the_logarithm_of_the_newcomers(seed, rounds):
    """-ln(sum_i p_i exp(-alpha l_i))/alpha, added up, is at most the losses of any member and ln(newcomers)/alpha."""
    rng = np.random.default_rng(seed)
    arena, behind, ever = Arena(HISTORY), {}, 0
    for awake in come_and_go(arena, rng, rounds):
        ever = max(ever, *(index for index, _ in awake))
        p, losses = arena.weights, rng.uniform(0.8, 1.0, size=8)
        losses[min(awake)[1]] = 0.0  # the oldest is the best of all
        mixed = -math.log(p @ np.exp(-0.3 * losses)) / 0.3
        assert p @ losses <= mixed + 0.3 / 8  # Hoeffding's lemma
        for J in awake:
            behind[J] = behind.get(J, 0.0) + mixed - losses[J[1]]
            assert behind[J] <= math.log(ever) / 0.3 + 1e-9
        arena.feed(p @ losses - losses)


@pytest.mark.parametrize("meta", [Prod, AdaptMLProd, CoinBetting, AdaNormalHedge])
def test_a_pool_takes_gradients_that_its_meta_learner_can_take(meta):
    """Larger ones turned its weights into nan."""
    ball = tw.domains.Ball(3, radius=1.5)

    def pool(feedback_range=48.0):
        members = [tw.experts.AdaGradDescent(ball, scale=scale) for scale in (0.5, 1.0, 2.0)]
        return tw.experts.Pool(members, meta=meta(feedback_range))

    learner = tw.Alone(pool())
    assert learner.gradient_bound == 48.0 / ball.diameter
    assert tw.Cover(ball, pool(), meta=Hedge(rate=0.1)).gradient_bound == 48.0 / ball.diameter
    with pytest.raises(InputError, match="above gradient_bound = 16"):
        learner.update([600.0, -500.0, 620.0], 1.0)
    for sign in (1.0, -1.0, -1.0):
        learner.update(sign * np.array([16.0, 0.0, 0.0]), 1.0)
    assert np.isfinite(learner.decision).all()
    assert tw.Alone(pool(), gradient_bound=3.0).gradient_bound == 3.0
    with pytest.raises(InputError, match="differ by up to 60, more than the feedback_range of their meta-learner"):
        tw.Alone(pool(), gradient_bound=20.0)
    assert tw.Alone(tw.experts.Pool([tw.experts.Descent(ball, 0.1)], meta=Hedge(rate=0.1))).gradient_bound is None
