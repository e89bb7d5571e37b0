"""Online PCA with one eigendecomposition a round: sampling, Algorithm 5 and its twins, its bound, bad input, state."""

import itertools
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import lapack

import thalweg as tw
from tests.twins.fantope import capped
from thalweg._kernels import pca as kernels
from thalweg.domains import Ball, Fantope
from thalweg.errors import InputError, ProjectionError
from thalweg.pca import AdaptivePCA, DescentPCA, EfficientPCA, RankWarning, _base, dyadic_regret, guarantee, sampling

# ---------------------------------------------------------------------------------------------------------- streams


def switching(d, k, rounds, period, noise=0.1, seed=0):
    """Unit vectors near a subspace that is redrawn after each period."""
    rng = np.random.default_rng(seed)
    rows = np.empty((rounds, d))
    for t in range(rounds):
        if t % period == 0:
            A = np.linalg.qr(rng.standard_normal((d, k)))[0]
        rows[t] = A @ rng.standard_normal(k) + noise * rng.standard_normal(d)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def gram_matrices(d, rounds, seed=0):
    """Positive semidefinite instances of all ranks, of norm at most 1."""
    rng = np.random.default_rng(seed)
    out = []
    for t in range(rounds):
        A = rng.standard_normal((d, 1 + t % d))
        X = A @ A.T
        out.append(X / np.linalg.norm(X) * rng.uniform(0.2, 1.0))
    return out


def paper_ball(d, k):
    return Ball((d, d), radius=math.sqrt(k))


def spectra(draw):
    """Eigenvalues of a matrix of the Fantope, with zeros and ones among them."""
    d = draw(st.integers(1, 12))
    k = draw(st.integers(1, d))
    values = draw(st.lists(st.floats(-3, 3), min_size=d, max_size=d))
    return capped(np.array(values), k), k


spectrum = st.composite(spectra)()

# --------------------------------------------------------------------------------------------------------- sampling


@pytest.mark.parametrize(
    ("sigma", "parts"),
    [
        ([1.0, 0.7, 0.3, 0.0], [(0.7, [0, 1]), (0.3, [0, 2])]),
        ([0.8, 0.6, 0.4, 0.2], [(0.6, [0, 1]), (0.2, [0, 2]), (0.2, [2, 3])]),
    ],
)
def test_vectors_of_the_mixture(sigma, parts):
    found = sampling.mixture(sigma)
    assert [chosen.tolist() for _, chosen in found] == [chosen for _, chosen in parts]
    np.testing.assert_allclose([p for p, _ in found], [p for p, _ in parts], rtol=1e-6)


@given(spectrum)
def test_mixture_has_the_given_mean(case):
    sigma, k = case
    parts = sampling.mixture(sigma)
    assert 1 <= len(parts) <= sigma.size
    mean = np.zeros_like(sigma)
    for probability, chosen in parts:
        assert probability > 0
        assert np.unique(chosen).size == chosen.size == k
        mean[chosen] += probability
    assert sum(p for p, _ in parts) == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(mean, sigma, atol=1e-10)


@given(spectrum)
def test_systematic_sampling_has_the_given_mean_exactly(case):
    """The set depends on u only through its order among the break points, so the mean is a finite sum."""
    sigma, k = case
    corners = np.unique(np.concatenate([[0.0, 1.0], np.cumsum(sigma) % 1.0]))
    mean, last = np.zeros_like(sigma), np.nextafter(1.0, 0.0)
    for low, high in itertools.pairwise(corners):
        chosen = sampling.systematic(sigma, min((low + high) / 2, last))  # neighbours have no middle
        assert chosen.size == k
        assert (np.diff(chosen) > 0).all()
        mean[chosen] += high - low
        for u in (low, np.nextafter(high, 0.0), np.nextafter(low, 1.0)):  # rounding must not lose an index
            assert np.unique(sampling.systematic(sigma, min(u, last))).size == k
    np.testing.assert_allclose(mean, sigma, atol=1e-12)


def test_systematic_sampling_by_its_definition():
    rng = np.random.default_rng(0)
    for _ in range(200):
        sigma = capped(rng.standard_normal(9), 4)
        u = rng.random()
        c = np.concatenate([[0.0], np.cumsum(sigma)])
        c[-1] = 4.0
        expected = np.flatnonzero(np.ceil(c[1:] - u) - np.ceil(c[:-1] - u) == 1)
        assert sampling.systematic(sigma, u).tolist() == expected.tolist()


@pytest.mark.parametrize("sigma", [[0.5, 0.6], [1.5, 0.5], [-0.5, 1.5], [], [0.0, 0.0], [np.nan, 1.0], [[1.0]], "ab"])
def test_samplers_refuse_what_is_no_spectrum(sigma):
    for call in (sampling.mixture, lambda s: sampling.systematic(s, 0.5)):
        with pytest.raises(InputError, match="sigma"):
            call(sigma)


@pytest.mark.parametrize("u", [1.0, -0.1, np.nan, "x"])
def test_systematic_refuses_a_point_outside(u):
    with pytest.raises(InputError, match="'u'"):
        sampling.systematic([0.5, 0.5], u)


@given(st.integers(2, 12), st.data())
def test_cap_solves_the_projection(d, data):
    """Against the domain's own solution, and the conditions that make it the nearest point."""
    k = data.draw(st.integers(1, d - 1))
    scale = data.draw(st.sampled_from([1e-6, 1.0, 1e6]))
    values = np.sort(np.array(data.draw(st.lists(st.floats(-2, 2), min_size=d, max_size=d))) * scale)
    out = np.empty(d)
    kernels.cap(values, k, out)
    np.testing.assert_allclose(out, capped(values, k), atol=1e-11)
    assert out.min() >= 0
    assert out.max() <= 1
    assert out.sum() == pytest.approx(k, abs=1e-11)
    free = (out > 1e-9) & (out < 1 - 1e-9)
    shift = (out - values)[free].mean() if free.any() else None
    if shift is not None:
        tol = 1e-9 * max(1.0, scale)
        np.testing.assert_allclose((out - values)[free], shift, atol=tol)
        assert (values[out == 0] + shift <= tol).all()
        assert (values[out == 1] + shift >= 1 - tol).all()


def test_packing_keeps_inner_products():
    rng = np.random.default_rng(0)
    A, B = (M + M.T for M in rng.standard_normal((2, 6, 6)))
    a, b, x = np.empty(21), np.empty(21), rng.standard_normal(6)
    kernels.pack(A, a)
    kernels.pack(B, b)
    assert a @ b == pytest.approx(np.sum(A * B), rel=1e-14)
    back = np.full((6, 6), np.nan)
    kernels.unpack(a, b, back)
    np.testing.assert_allclose(np.tril(back), np.tril(A + B), rtol=1e-14)
    kernels.pack_vector(x, -2.0, a)
    kernels.pack(-2.0 * np.outer(x, x), b)
    np.testing.assert_allclose(a, b, rtol=1e-15)


@given(st.integers(2, 9), st.integers(0, 2**32 - 1))
def test_thin_tells_the_decision(d, seed):
    """Whatever it chooses, P or Y - P, fits into its work space and is right."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, d))
    Y = rng.standard_normal((d, d)) * 10.0 ** rng.uniform(-1, 1)
    Y = (Y + Y.T) / 2
    values, U = np.linalg.eigh(Y)
    s = np.empty(d)
    kernels.cap(values, k, s)
    guard = np.full(2 * d * ((d + k) // 2) + 1, np.nan)
    M = np.full((d, d), np.nan)
    direct, shift = kernels.thin(values, s, np.ascontiguousarray(U.T), guard[:-1], M)
    assert np.isnan(guard[-1])
    P = (U * s) @ U.T
    np.testing.assert_allclose(M + shift * np.eye(d), Y - P if direct else P, atol=1e-12 * max(1.0, np.abs(Y).max()))


# ------------------------------------------------------------------------------------------- Algorithm 5 and its twins


class Transcription:
    """Algorithm 5 in plain NumPy, experts by name, nothing shared with the package but the Fantope's projection."""

    def __init__(self, d, k, G, C, R):
        self.d, self.k, self.G, self.C, self.R = d, k, G, C, R
        self.experts, self.t = {}, 1
        self.birth(1)
        self.combine()

    def birth(self, i):
        self.experts[i] = {
            "P": self.k / self.d * np.eye(self.d),
            "lw": 0.0,
            "V": 0.0,
            "eta": 0.5,
            "gamma": math.log(1 + 2 * i),
            "step": math.sqrt(self.k * (self.d - self.k) / (self.d * (i & -i))) / self.G,
        }

    def combine(self):
        scores = np.array([e["lw"] + math.log(e["eta"]) for e in self.experts.values()])
        p = np.exp(scores - scores.max())
        self.p = p / p.sum()
        Y = sum(w * e["P"] for w, e in zip(self.p, self.experts.values(), strict=True))
        self.Y = (Y + Y.T) / 2  # `eigh` reads one triangle: without this a rounding difference of the two grows

    def decision(self):
        values, U = np.linalg.eigh(self.Y)
        return (U * capped(values, self.k)) @ U.T

    def surrogate_gradient(self, X, sign=1.0):
        away = sign * (self.Y - self.decision())
        n = np.linalg.norm(away)
        if n <= 1e-12:
            return -X
        V = away / n
        return -X - min(0.0, np.sum(-X * V)) * V

    def update(self, X):
        P = self.decision()
        H = self.surrogate_gradient(X)
        for e in self.experts.values():
            r = np.sum(H * (self.Y - e["P"])) / (2 * self.G * self.R)
            assert abs(r) <= 1 + 1e-9
            e["V"] += r * r
            eta = min(0.5, math.sqrt(e["gamma"] / (1 + e["V"])))
            e["lw"] = eta / e["eta"] * (e["lw"] + math.log1p(e["eta"] * r))
            e["eta"] = eta
            moved = e["P"] - e["step"] * H - self.C
            size = np.linalg.norm(moved)
            e["P"] = self.C + (moved * self.R / size if size > self.R else moved)
        self.t += 1
        self.experts = {i: e for i, e in self.experts.items() if i + (i & -i) > self.t}
        self.birth(self.t)
        self.combine()
        return float(np.trace(X) - np.sum(P * X))


def twin_of(learner):
    Y = learner.surrogate
    return Transcription(learner.dim, learner.rank, learner.gradient_bound, Y.center, Y.radius)


def from_parts(d, k, G, Y):
    """Algorithm 5 from the parts of the package that know nothing of PCA."""

    def inner(Y):
        def expert(length):
            return tw.experts.Descent(Y, math.sqrt(k * (d - k) / (d * length)) / G)

        return tw.Cover(Y, expert, meta=tw.metas.AdaptMLProd(2 * G * Y.radius))

    return tw.OneProjection(Fantope(d, k), inner, surrogate=Y, gradient_bound=G)


CASES = [(6, 2, 1.0, "tight"), (6, 2, 1.0, "paper"), (5, 1, 4.0, "tight"), (4, 3, 1.0, "paper"), (2, 1, 1.0, "tight")]


def case(d, k, G, ball):
    return EfficientPCA(d, k, gradient_bound=G, surrogate=paper_ball(d, k) if ball == "paper" else None, rng=0)


@pytest.mark.filterwarnings("ignore::thalweg.pca.RankWarning")
@pytest.mark.parametrize("kind", ["vectors", "matrices"])
@pytest.mark.parametrize(("d", "k", "G", "ball"), CASES)
def test_the_same_numbers_as_the_transcription(d, k, G, ball, kind):
    learner = case(d, k, G, ball)
    twin = twin_of(learner)
    stream = math.sqrt(G) * switching(d, k, 300, 64) if kind == "vectors" else [G * X for X in gram_matrices(d, 300)]
    for x in stream:
        np.testing.assert_allclose(learner.decision, twin.decision(), atol=1e-11)
        paid = twin.update(np.outer(x, x) if x.ndim == 1 else x)
        assert learner.update(x) == pytest.approx(max(paid, 0.0), abs=1e-11 * G)
        assert learner.born[::-1].tolist() == list(twin.experts)
        np.testing.assert_allclose(learner.weights[::-1], twin.p, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize(("d", "k", "G"), [(6, 2, 1.0), (5, 1, 4.0)])
def test_the_same_numbers_as_the_parts(d, k, G):
    """`Cover` inside `OneProjection`: in the smallest ball its experts start at (k/d) I, too."""
    learner = EfficientPCA(d, k, gradient_bound=G, rng=0)
    parts = from_parts(d, k, G, learner.surrogate)
    for x in math.sqrt(G) * switching(d, k, 150, 40):
        np.testing.assert_allclose(learner.decision, parts.decision, atol=1e-10)
        learner.update(x)
        parts.update(-np.outer(x, x))
    np.testing.assert_allclose(learner.weights, parts.inner.weights, rtol=1e-8)
    assert learner.born.tolist() == parts.inner.born.tolist()


def test_rounding_does_not_grow():
    """Two runs whose instances differ by rounding stay together."""
    rng = np.random.default_rng(0)
    a, b = EfficientPCA(7, 2, rng=0), EfficientPCA(7, 2, rng=0)
    gaps = [abs(a.update(x) - b.update(x * (1 + 1e-15 * rng.uniform(-1, 1, 7)))) for x in switching(7, 2, 1000, 300)]
    assert max(gaps) < 1e-11


def test_surrogate_gradient_keeps_its_promises_and_the_printed_sign_does_not():
    """||H|| <= ||X||, and regret at P is at most surrogate regret at Y. With V turned round both fail somewhere."""
    d, k = 6, 2
    rng = np.random.default_rng(1)
    twin = Transcription(d, k, 1.0, np.zeros((d, d)), math.sqrt(k))
    broken = 0
    for x in switching(d, k, 200, 50):
        X, P = np.outer(x, x), twin.decision()
        U = np.linalg.qr(rng.standard_normal((d, k)))[0]
        for sign in (1.0, -1.0):
            H = twin.surrogate_gradient(X, sign)
            longer = np.linalg.norm(H) > np.linalg.norm(X) + 1e-10
            weaker = np.sum(-X * (P - U @ U.T)) > np.sum(H * (twin.Y - U @ U.T)) + 1e-10
            if sign > 0:
                assert not longer
                assert not weaker
            else:
                broken += longer or weaker
        twin.update(X)
    assert broken > 20


def test_a_vector_is_its_matrix():
    a, b = EfficientPCA(5, 2, rng=0), EfficientPCA(5, 2, rng=0)
    for x in switching(5, 2, 30, 10):
        assert a.update(x) == pytest.approx(b.update(np.outer(x, x)), abs=1e-10)
    np.testing.assert_allclose(a.decision, b.decision, atol=1e-9)


def test_scaling_instances_and_bound_together_changes_nothing():
    a, b = EfficientPCA(5, 2, rng=0), EfficientPCA(5, 2, gradient_bound=9.0, rng=0)
    for x in switching(5, 2, 30, 10):
        assert b.update(3.0 * x) == pytest.approx(9.0 * a.update(x), abs=1e-9)
    assert b.regret_bound(7, 23) == pytest.approx(9.0 * a.regret_bound(7, 23))


# ------------------------------------------------------------------------------------------------- what it plays


def test_drawn_projections_have_the_mean():
    """5000 draws of one round's projection: each entry of the mean within 5 of its standard deviations."""
    learner = EfficientPCA(6, 2, rng=0)
    learner.partial_fit(switching(6, 2, 37, 20))
    saved, n = learner.state(), 5000
    total, square = np.zeros((6, 6)), np.zeros((6, 6))
    for seed in range(n):
        learner.restore(saved | {"seed": np.array([seed])})
        P = learner.projection
        total += P
        square += P * P
    mean = total / n
    deviation = np.sqrt(np.maximum(square / n - mean**2, 0.0) / n)
    assert (np.abs(mean - learner.decision) <= 5 * deviation + 1e-12).all()
    assert np.count_nonzero(deviation > 1e-4) > 20  # it was a matter of chance


def test_drawn_projections_pay_the_stated_loss_on_average():
    """Over a run, the losses of what was drawn and the losses returned differ by chance only."""
    learner = EfficientPCA(6, 2, rng=3)
    gaps = []
    for x in switching(6, 2, 2000, 300):
        rest = x - learner.projection @ x
        gaps.append(rest @ rest - learner.update(x))
    assert abs(np.mean(gaps)) < 4 * np.std(gaps) / math.sqrt(len(gaps))


def test_draws_differ_by_seed_and_round_only():
    rows = switching(6, 2, 300, 50)

    def drawn(rng):
        learner = EfficientPCA(6, 2, rng=rng)
        out = []
        for x in rows:
            out.append(learner.components)
            learner.update(x)
        return np.array(out)

    first = drawn(5)
    assert np.array_equal(first, drawn(5))
    assert np.array_equal(first, drawn(np.random.default_rng(5)))
    assert not np.array_equal(first, drawn(6))


# ----------------------------------------------------------------------------------------------------- counted


def test_exactly_one_eigendecomposition_a_round(monkeypatch):
    """Counted at LAPACK's door, not by the learner."""
    calls = {}

    def watch(module, name):
        real = getattr(module, name)

        def counted(*args, **kwargs):
            calls[name] = calls.get(name, 0) + 1
            return real(*args, **kwargs)

        monkeypatch.setattr(module, name, counted)

    drivers = [name for name in dir(lapack) if name.startswith(("dsye", "dsyt", "dgeev", "dgees", "dgesd", "dst"))]
    assert "dsyevd" in drivers

    monkeypatch.setattr(_base, "LATER", 100)
    learner = EfficientPCA(6, 2, rng=0)
    rows, matrices = switching(6, 2, 300, 50), gram_matrices(6, 40)
    for name in ("eigh", "eigvalsh", "eig", "eigvals", "svd", "qr"):
        watch(np.linalg, name)
    for name in drivers:
        watch(lapack, name)
    for x in [*rows, *matrices]:
        for _ in range(2):  # asking twice costs nothing
            _ = learner.decision, learner.projection, learner.components, learner.transform(rows[0]), learner.mixture()
        learner.update(x)
    assert calls == {"eigh": 100, "dsyevd": 240}
    assert learner.eigendecompositions == 340
    assert learner.queries == tw.Queries(projections=340, gradients=340, values=0)


def test_the_experts_alive_are_the_one_bits():
    learner = EfficientPCA(3, 1, rng=0)
    alive = {5: {4, 5}, 6: {4, 6}, 7: {4, 6, 7}, 8: {8}, 13: {8, 12, 13}}
    for t in range(1, 600):
        assert learner.active == bin(t).count("1")
        assert set(learner.born.tolist()) == alive.get(t, set(learner.born.tolist()))
        assert learner.weights.sum() == pytest.approx(1.0)
        state = learner.state()
        slots = state["born"] > 0
        np.testing.assert_allclose(state["meta.gammas"][0, slots], np.log(1 + 2 * state["born"][slots]))  # gamma_i
        learner.update([0.6, 0.8, 0.0])


def test_memory_is_half_a_matrix_for_each_level_and_a_few_more():
    d, rounds = 60, 300
    levels = rounds.bit_length()
    rows = switching(d, 3, rounds, 100)
    EfficientPCA(d, 3, rng=0).partial_fit(rows[:2])  # load the kernels
    tracemalloc.start()
    learner = EfficientPCA(d, 3, rng=0)
    learner.partial_fit(rows)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held <= (levels / 2 + 8) * d * d * 8 + 300_000
    assert peak <= (levels / 2 + 14) * d * d * 8 + 300_000 + rows.nbytes  # while LAPACK works
    numbers = sum(np.asarray(value).size for value in learner.state().values())
    assert numbers <= (levels / 2 + 3) * d * d + 50 * d


# --------------------------------------------------------------------------------------------------- the guarantee


def abrupt(rounds, changes):
    """e_1, then e_2, then e_1, ..: the direction turns at each change (rounds counted from 0)."""
    rows = np.zeros((rounds, 2))
    which = np.searchsorted(changes, np.arange(rounds), side="right") % 2
    rows[np.arange(rounds), which] = 1.0
    return rows


# Round 6144 = 3 * 2048 starts an interval of the cover while an older expert lives on; 11000 starts nothing special.
CHANGES = [6143, 11_000]


def losses_of(learner, rows):
    return np.array([learner.update(x) for x in rows])


@pytest.mark.parametrize("ball", ["tight", "paper"])
def test_regret_on_every_dyadic_interval_is_within_the_bound(ball):
    rows = abrupt(2**14 - 1, CHANGES)
    learner = EfficientPCA(2, 1, surrogate=paper_ball(2, 1) if ball == "paper" else None, rng=0)
    found = list(dyadic_regret(losses_of(learner, rows), rows, 1, shortest=16))
    assert len(found) > 2000
    assert all(one.regret <= learner.regret_bound(one.start, one.stop) for one in found)
    worst = max(one.regret / math.sqrt(one.stop - one.start) for one in found)
    assert worst < 6  # in practice; the theorem's constant is near 20


def test_the_static_method_violates_it_after_a_change():
    """Tuned for 2^18 rounds, of which the first 2^14 are played: the other guarantee does not wait for the end."""
    rows = abrupt(2**14 - 1, CHANGES)
    static = losses_of(DescentPCA(2, 1, 2**18, rng=0), rows)
    bound = EfficientPCA(2, 1, rng=0).regret_bound
    beyond = [one for one in dyadic_regret(static, rows, 1, shortest=256) if one.regret > bound(one.start, one.stop)]
    assert (6143, 6143 + 1024) in [(one.start, one.stop) for one in beyond]
    assert all(any(one.start <= change < one.stop for change in CHANGES) for one in beyond)


@pytest.mark.slow
def test_regret_over_a_long_stream():
    """The whole 2^18 rounds, with more changes, for both."""
    T = 2**18
    changes = [6143, 11_000, 24_575, 70_000, 100_000, 150_000, 2**17 + 2**16 - 1, 230_000]
    rows = abrupt(T - 1, changes)
    learner = EfficientPCA(2, 1, rng=0)
    for one in dyadic_regret(losses_of(learner, rows), rows, 1, shortest=64):
        assert one.regret <= learner.regret_bound(one.start, one.stop)
    static = losses_of(DescentPCA(2, 1, T, rng=0), rows)
    assert any(
        one.regret > learner.regret_bound(one.start, one.stop) for one in dyadic_regret(static, rows, 1, shortest=256)
    )
    assert static.sum() - rows.shape[0] / 2 < math.sqrt(T / 2)  # its own promise it keeps


@pytest.mark.parametrize("seed", range(4))
def test_regret_on_random_streams(seed):
    """All intervals of the cover and random others, with noise and any rank."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(3, 7))
    k = int(rng.integers(1, d // 2 + 1))
    rows = switching(d, k, 1023, int(rng.integers(60, 400)), noise=0.2, seed=seed)
    learner = EfficientPCA(d, k, rng=0)
    losses = losses_of(learner, rows)
    for one in dyadic_regret(losses, rows, k):
        assert one.regret <= learner.regret_bound(one.start, one.stop) + 1e-9
    for _ in range(100):
        start, stop = sorted(rng.choice(1024, 2, replace=False))
        best = np.linalg.eigvalsh(rows[start:stop].T @ rows[start:stop])[:-k].sum()
        assert losses[start:stop].sum() - best <= learner.regret_bound(int(start), int(stop)) + 1e-9


def test_the_bound_grows_like_a_root_from_any_start():
    """Also where the expert that starts there is tuned for far more rounds than the interval has."""
    for start in (2**15 - 1, 2**15, 2**15 + 5000, 3 * 2**12 - 1):
        for n in 2 ** np.arange(4, 16):
            bound = guarantee.interval_bound(start, start + int(n), 20, 3, 1.0, math.sqrt(3 * 17 / 20))
            assert bound <= n * math.sqrt(3) + 1e-9
            assert bound <= 90 * math.sqrt(3 * n)
    early = guarantee.interval_bound(2**40 - 1, 2**40 - 1 + 2**18, 20, 3, 1.0, math.sqrt(3 * 17 / 20))
    assert early <= 120 * math.sqrt(3 * 2**18)  # the expert that starts there is tuned for 2^40 rounds
    aligned = guarantee.interval_bound(4095, 8191, 20, 3, 1.0, math.sqrt(3 * 17 / 20))
    assert aligned < guarantee.interval_bound(4096, 8192, 20, 3, 1.0, math.sqrt(3 * 17 / 20))


def test_the_bound_of_one_piece_by_hand():
    """Rounds 3 * 2^10 .. 2^12 - 1 of d = 4, k = 1, G = 2: one expert, tau = n = 1024."""
    m, n, G, rho = 3 * 1024, 1024, 2.0, math.sqrt(3 / 4)
    gamma, mu = math.log(1 + 2 * m), math.log(1 + (1 + math.log(1 + m + n - 1)) / (2 * math.e))
    slope = 3 * math.sqrt(gamma) + mu
    meta = 2 * G * rho * (slope * (1 + math.sqrt(n)) + 6 * gamma + 2 * mu)
    expected = meta + G * rho * math.sqrt(n)
    assert EfficientPCA(4, 1, gradient_bound=G).regret_bound(m - 1, m + n - 1) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("start", "stop"), [(3, 3), (5, 2), (-1, 4), (0.5, 3), (0, "x")])
def test_the_bound_refuses_what_is_no_interval(start, stop):
    with pytest.raises((InputError, TypeError)):
        EfficientPCA(3, 1).regret_bound(start, stop)


# ---------------------------------------------------------------------------------------------------------- bad input


def test_a_bad_row_is_named_and_none_is_learned():
    learner = EfficientPCA(4, 2, rng=0)
    rows = 0.4 * np.ones((6, 4))
    rows[4] = 0.6
    with pytest.raises(InputError, match=r"row 4 of X has \|\|x\|\|\^2 = 1.44"):
        learner.partial_fit(rows)
    rows[4] = np.nan
    with pytest.raises(InputError, match="row 4 of X has entries that are nan"):
        learner.partial_fit(rows)
    with pytest.raises(InputError, match=r"rows of 4 numbers. Got shape \(4,\)"):
        learner.partial_fit(rows[0])
    assert learner.rounds == 0
    assert learner.partial_fit(rows[:3]) is learner
    assert learner.partial_fit(np.zeros((0, 4))).rounds == 3


def test_bad_rows_for_transform():
    learner = EfficientPCA(4, 2, rng=0)
    with pytest.raises(InputError, match=r"Got shape \(3,\)"):
        learner.transform([1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="nan or infinite"):
        learner.transform([1.0, 2.0, 3.0, np.nan])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dim": 0}, "'dim'"),
        ({"rank": 0}, "'rank'"),
        ({"rank": 4}, "'rank' parameter of EfficientPCA must be less than its 'dim' of 4. Got 4.*nothing to learn"),
        ({"gradient_bound": 0.0}, "'gradient_bound'"),
        ({"rng": "x"}, "'rng'"),
        ({"surrogate": "ball"}, "must be a thalweg Ball"),
        ({"surrogate": Ball((3, 3))}, r"of shape \(4, 4\)"),
        ({"surrogate": tw.domains.Box(np.zeros(4), np.ones(4))}, "must be a thalweg Ball"),
        ({"surrogate": Ball((4, 4), radius=1.4)}, "contain all projections of rank 2; some lie 1.41421"),
        ({"surrogate": Ball((4, 4), radius=9.0, center=np.triu(np.ones((4, 4))))}, "symmetric"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(InputError, match=message):
        EfficientPCA(**({"dim": 4, "rank": 2} | arguments))


def test_a_large_rank_says_what_changes_and_works():
    """The bound needs k (d - k)/d only, so nothing breaks beyond d/2."""
    with pytest.warns(RankWarning, match=r"its bounds have k \(d - k\)/d = 0.75 in the place of k") as told:
        learner = EfficientPCA(4, 3, rng=0)
    assert told[0].filename == __file__
    rows = switching(4, 3, 511, 100)
    losses = losses_of(learner, rows)
    assert all(one.regret <= learner.regret_bound(one.start, one.stop) for one in dyadic_regret(losses, rows, 3))
    assert losses[460:].mean() < losses[400:420].mean()
    EfficientPCA(4, 2)  # half is fine: no warning


def test_losses_are_not_for_it():
    learner = EfficientPCA(4, 2, rng=0)
    assert not isinstance(learner, tw.Learner)
    told = r"needs a learner that takes losses. Got EfficientPCA, which takes instances: call its update\(x\)"
    with pytest.raises(InputError, match="play " + told):
        tw.play(learner, [tw.losses.Linear(np.zeros((4, 4)))])
    with pytest.raises(InputError, match="OneProjection " + told):
        tw.OneProjection(learner.domain, lambda Y: learner)
    with pytest.raises(AssertionError, match="check_learner " + told):
        tw.testing.check_learner(lambda: learner)


@pytest.mark.parametrize("later", [0, 1000])
def test_a_failed_eigendecomposition_changes_nothing(monkeypatch, later):
    def fails(A, **options):
        A[:] = np.nan
        if later:
            raise np.linalg.LinAlgError
        return np.zeros(4), A, 1

    monkeypatch.setattr(_base, "LATER", later)
    for make in (EfficientPCA, lambda *dims, rng: DescentPCA(*dims, 100, rng=rng)):
        learner = make(4, 2, rng=0).partial_fit(switching(4, 2, 9, 5))
        before = learner.state()
        with monkeypatch.context() as broken:
            broken.setattr(*(np.linalg, "eigh") if later else (lapack, "dsyevd"), fails)
            with pytest.raises(ProjectionError, match="round 10: the eigendecomposition did not converge"):
                learner.update([0.5, 0.5, 0.0, 0.0])
        after = learner.state()
        for key in before:
            lower = np.tril if key == "A" else np.asarray  # the other triangle is never read
            assert np.array_equal(lower(before[key]), lower(after[key])), key
        learner.update([0.5, 0.5, 0.0, 0.0])


def test_small_matrices_change_the_solver_at_a_round_of_the_state(monkeypatch):
    """Both solvers give the same decisions, and a learner that is restored repeats every bit."""
    rows = switching(6, 2, 80, 20)
    decisions = []
    for later in (0, 30, 1000):
        monkeypatch.setattr(_base, "LATER", later)
        learner = EfficientPCA(6, 2, rng=0).partial_fit(rows[:25])
        other = EfficientPCA(6, 2, rng=0)
        other.restore(learner.state())
        for x in rows[25:]:
            assert learner.update(x) == other.update(x)
        assert np.array_equal(learner.decision, other.decision)
        decisions.append(learner.decision)
    for decision in decisions[1:]:
        assert np.abs(decision - decisions[0]).max() < 1e-12


def test_strange_but_allowed_instances():
    learner = EfficientPCA(3, 1, rng=0)
    for x in (
        [0, 0, 0],
        [1, 0, 0],
        np.float32([0.5, 0.5, 0.5]),
        np.zeros((3, 3)),
        np.eye(3) / 2,
        [[1, 0, 0]] + [[0] * 3] * 2,
    ):
        assert 0 <= learner.update(x) <= 3
    nearly = np.outer([0.5, 0.5, 0.5], [0.5, 0.5, 0.5])
    nearly[0, 1] += 1e-12  # rounding is no asymmetry
    learner.update(nearly - 1e-12 * np.eye(3))
    assert learner.rounds == 7


# --------------------------------------------------------------------------------------------------- stop and resume


@pytest.mark.parametrize("kind", [EfficientPCA, AdaptivePCA])
def test_restoring_a_longer_run_into_a_new_learner(kind):
    """More levels than a new learner has, and back again."""
    rows = switching(4, 1, 700, 100)
    learner = kind(4, 1, rng=0)
    early = learner.partial_fit(rows[:100]).state()
    late = learner.partial_fit(rows[100:600]).state()
    rest = [learner.update(x) for x in rows[600:]]
    other = kind(4, 1, rng=1)
    other.restore(late)
    assert [other.update(x) for x in rows[600:]] == rest
    assert np.array_equal(other.components, learner.components)  # the draws go on, too
    other.restore(early)
    other.partial_fit(rows[100:600])
    assert [other.update(x) for x in rows[600:]] == rest
