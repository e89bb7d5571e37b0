"""The study of intervals at small size: its peers are what they say, its sentences follow from the numbers."""

import dataclasses
import gzip
import io
import math
import tarfile

import numpy as np
import pytest
from thalweg.lab.studies.conformal import cases, peers, published, report, runs
from thalweg.lab.studies.conformal.study import SIZES, STUDY, available, plan

from tests.lab.reports import check_report
from thalweg.errors import InputError
from thalweg.estimators import ConformalTracker
from thalweg.lab.report import part

FEW = dataclasses.replace(SIZES["small"], streams=("stationary", "levels"), delayed=("stationary",), published=False)
ALPHA = runs.ALPHA


@pytest.fixture(scope="module")
def scores():
    rng = np.random.default_rng(0)
    return np.abs(rng.standard_normal(400)) * np.where(np.arange(400) < 200, 1.0, 4.0)


# ---------------------------------------------------------------------------------------------------------- the report


def test_a_run_is_what_it_says(results):
    y_hat, y = cases.draw("levels", FEW.horizon)
    q = ConformalTracker(0.9).run_scores(np.abs(y - y_hat))
    row = results[f"run/levels/{runs.OURS}"]
    inside = (np.abs(y) <= q)[100:]
    assert row["coverage"] == pytest.approx(inside.mean())
    assert row["worst"] == pytest.approx(min(inside[t : t + 100].mean() for t in range(inside.size - 99)))
    # the interval score of Gneiting and Raftery, for the intervals [-q, q]
    score = 2 * q + 2 / ALPHA * (np.maximum(-q - y, 0) + np.maximum(y - q, 0))
    assert row["score"] == pytest.approx(score[100:].mean())


def test_the_report_is_whole(page, results):
    lines, text, tables = check_report(page, STUDY, results, "scores", "coverage")
    assert [float(line["score"]) for line in lines] == [row["score"] for row in part(results, "run")]
    assert "real" not in tables
    assert text.count("<table>") == len(tables)


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """An archive like MAPIE's: two days of two hours, and intervals around 10 and 20 for the first hours of 2019."""

    def write(limits):
        prices = "Date,Spot,hour\n2018-12-31 00:00:00,1,0\n" + "".join(
            f"2019-01-0{day} 0{hour}:00:00,{10 * day + 3 + hour},{hour}\n" for day in (1, 2) for hour in (0, 1)
        )
        files = {published.FILES[0]: gzip.compress(prices.encode()), published.FILES[1]: limits.encode()}
        with tarfile.open(tmp_path / "mapie.tar.gz", "w:gz") as file:
            for name, content in files.items():
                member = tarfile.TarInfo(f"mapie/examples/data/{name}")
                member.size = len(content)
                file.addfile(member, io.BytesIO(content))
        published.intervals.cache_clear()

    monkeypatch.setenv(published.VARIABLE, str(tmp_path / "mapie.tar.gz"))
    yield write
    published.intervals.cache_clear()


def test_published_intervals_are_compared_where_their_archive_is_named(archive, monkeypatch):
    archive("Y_inf,Y_sup\n8,12\n16,24\n")
    y, limits = published.intervals()
    assert y.tolist() == [13.0, 23.0]
    assert limits.tolist() == [[8.0, 12.0], [16.0, 24.0]]
    row = runs.play_published(method=runs.PUBLISHED)  # the last day counts: 3 off, an interval of 4 to either side
    assert (row["rounds"], row["score"], row["coverage"]) == (2, 8.0, 1.0)
    results = {f"published/{name}": runs.play_published(method=name) for name in (runs.PUBLISHED, "window 100")}
    assert [line[0] for line in report._published(list(results.values())).body] == ["window 100", runs.PUBLISHED]
    size = dataclasses.replace(FEW, published=True)
    assert any(job.name.startswith("published/") for job in plan(available(size)))
    monkeypatch.delenv(published.VARIABLE)
    assert not any(job.name.startswith("published/") for job in plan(available(size)))


def test_an_archive_of_something_else_is_refused(archive, monkeypatch, tmp_path):
    archive("Y_inf,Y_sup\n8,12\n")
    with pytest.raises(InputError, match="2 prices and 1 intervals"):
        published.intervals()
    monkeypatch.setenv(published.VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="must name the source archive of MAPIE"):
        published.intervals()


def test_sentences_follow_from_the_numbers(results):
    told = {name: dict(row) for name, row in results.items()}
    for row in part(told, "run"):
        row["score"] = 2.0 if row["method"] == "DtACI" else 3.0
        if row["method"] == runs.OURS:
            row |= {
                "score": 2.5 if row["case"] == "levels" else 1.0,
                "coverage": 0.91 if row["case"] == "levels" else 0.9,
            }
    said = report.remarks(told)
    assert said["ours"] == {"stationary": 0.5, "levels": 1.25}
    assert said["lost"] == {"levels": 1.25}
    assert said["won"] == 1
    assert said["runner_up"] == ("DtACI", 1.0)
    assert said["off"] == ("levels", 0.91)


def test_streams_without_their_data_are_left_out(monkeypatch):
    monkeypatch.setattr(cases, "at_hand", lambda series: series == "sea")
    size = available(SIZES["usual"])
    assert [name for name in size.streams if cases.CASES[name].real] == [
        "sea, persistence", "sea, least squares", "sea, season"
    ]  # fmt: skip
    assert size.delayed == ("sea", "stationary", "levels", "walk", "autoregressive")


# ----------------------------------------------------------------------------------------------------------- forecasts


def test_forecasts_know_the_past_alone():
    z = np.cumsum(np.random.default_rng(1).standard_normal(200))
    other = z.copy()
    other[150:] += 5.0
    for forecast in (cases.persistence, lambda z: cases.seasonal(z, 24), lambda z: cases.least_squares(z, 24)):
        (a, y), (b, _) = forecast(z), forecast(other)
        skipped = z.size - y.size
        assert (y == z[skipped:]).all()
        assert (a[: 150 - skipped + 1] == b[: 150 - skipped + 1]).all()


def test_least_squares_minimise():
    """After t rounds the next forecast is that of weighted, slightly regularised least squares."""
    z = np.sin(np.arange(120) / 3) + 0.1 * np.random.default_rng(2).standard_normal(120)
    said, _ = cases.least_squares(z)
    mean, spread = z[:50].mean(), z[:50].std()
    x = (z - mean) / spread
    rows = np.array([[x[t - 1], x[t - 2], x[t - 3], 1.0] for t in range(3, 119)])
    weights = 0.999 ** np.arange(len(rows))[::-1]
    prior = 0.999 ** len(rows) / 100 * np.eye(4)
    w = np.linalg.solve(rows.T @ (weights[:, None] * rows) + prior, rows.T @ (weights * x[3:119]) + prior[:, 0])
    assert said[-1] == pytest.approx(w @ [x[118], x[117], x[116], 1.0] * spread + mean, rel=1e-6)


# ---------------------------------------------------------------------------------------------------------------- peers


def conformal(kept, p):
    """The ceil(p (n + 1))-th of the sorted."""
    n = len(kept)
    return 0.0 if n == 0 or p <= 0 else sorted(kept)[min(max(math.ceil(p * (n + 1) - 1e-12), 1), n) - 1]


def test_windows_are_quantiles_of_the_past(scores):
    found = peers.window(scores, ALPHA, 50)
    assert found.tolist() == [conformal(scores[max(0, t - 50) : t], 0.9) for t in range(400)]
    assert peers.window(scores, ALPHA, 0)[-1] == conformal(scores[:-1], 0.9)


def test_aci_by_hand(scores):
    level, wanted = ALPHA, []
    for t, s in enumerate(scores):
        wanted.append(conformal(scores[max(0, t - 60) : t], 1 - level))
        level += 0.02 * (ALPHA - (s > wanted[-1]))
    assert peers.aci(scores, ALPHA, 0.02, 60).tolist() == wanted


def test_dtaci_by_hand(scores):
    gammas = peers.GAMMAS
    levels, w, wanted = np.full(8, ALPHA), np.ones(8), []
    rate = math.sqrt(3 / 100) * math.sqrt((math.log(800) + 2) / (0.9**2 * 0.1**3 + 0.1**2 * 0.9**3))
    for t, s in enumerate(scores):
        kept = scores[max(0, t - 60) : t]
        p = w / w.sum()
        wanted.append(conformal(kept, 1 - p @ levels))
        beta = (kept >= s).sum() / (len(kept) + 1) if len(kept) else ALPHA
        loss = np.where(beta >= levels, ALPHA * (beta - levels), (1 - ALPHA) * (levels - beta))
        tilted = p * np.exp(-rate * loss)
        w = (1 - 1 / 200) * tilted / tilted.sum() + 1 / 200 / 8
        levels = levels + gammas * (ALPHA - (levels > beta))
    assert peers.dtaci(scores, ALPHA, 60) == pytest.approx(wanted, rel=1e-12)


def test_scale_free_descent_by_hand(scores):
    x, squares, wanted = 0.0, 0.0, []
    for s in scores:
        wanted.append(max(x, 0.0))
        g = ALPHA - (s > x)
        squares += g**2
        x -= 2.0 / math.sqrt(3) * g / math.sqrt(squares)
    assert peers.scale_free(scores, ALPHA, 2.0) == pytest.approx(wanted, rel=1e-12)


def test_saocp_by_hand(scores):
    """Experts as objects: SF-OGD, and a coin bettor each."""

    def pinball(s, q):
        return max((1 - ALPHA) * (s - q), ALPHA * (q - s))

    experts, wanted, last, D = [], [], 0.0, 2.0
    for t, s in enumerate(scores, start=1):
        experts = [e for e in experts if t < e["end"]]
        power = t & -t
        experts.append({"x": last, "G": 0.0, "born": t, "end": t + 8 * power, "w": 0.0, "g": [], "wg": []})
        prior = np.array([1 / (e["born"] ** 2 * (1 + math.floor(math.log2(e["born"])))) for e in experts])
        bets = prior * [max(e["w"], 0.0) for e in experts]
        p = bets / bets.sum() if bets.sum() > 0 else prior / prior.sum()
        last = float(p @ [e["x"] for e in experts])
        wanted.append(max(last, 0.0))
        for e in experts:
            gain = min(max((pinball(s, last) - pinball(s, e["x"])) / D, -1.0), 1.0)
            gain = gain if e["w"] > 0 else max(gain, 0.0)
            e["g"].append(gain)
            e["wg"].append(e["w"] * gain)
            e["w"] = sum(e["g"]) * (1 + sum(e["wg"])) / (t - e["born"] + 1)
            g = ALPHA - (s > e["x"])
            e["G"] += g**2
            e["x"] -= D / math.sqrt(3) * g / math.sqrt(e["G"])
    assert peers.saocp(scores, ALPHA, D) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("integral", [False, True])
def test_tracking_by_hand(scores, integral):
    x, total, wanted = 0.0, 0.0, []
    for t, s in enumerate(scores):
        B = scores[max(0, t - 100) : t].max() if t else 0.0
        angle = min(max(total * math.log(t + 1) / (5 * (t + 1)), -1.5), 1.5)
        wanted.append(max(x + (B * math.tan(angle) if integral else 0.0), 0.0))
        missed = (s > wanted[-1]) - ALPHA
        x += 0.1 * scores[max(0, t - 99) : t + 1].max() * missed
        total += missed
    assert peers.tracking(scores, ALPHA, 0.1, integral) == pytest.approx(wanted, rel=1e-12)


# --------------------------------------------------------------------------------------------------------- newest peers


def test_decaying_steps(scores):
    D, x, q = scores[:100].max(), 0.0, []
    for t, s in enumerate(scores, 1):
        q.append(max(x, 0))
        x = x + D / t**0.6 * ((s > x) - ALPHA)
    assert np.allclose(peers.decaying(scores, ALPHA), q, rtol=1e-9)


@pytest.mark.parametrize("newton", [False, True])
def test_betting(scores, newton):
    """Wealth is 1 and all that was won; a bet is a share of it."""
    bets, coins, q, slopes = [0.0], [], [], []
    for s in scores:
        wealth = 1.0 + sum(c * w for c, w in coins)
        stake = bets[-1] * wealth
        q.append(max(stake, 0.0))
        c = (s > stake) - ALPHA
        coins.append((c, stake))
        if newton:
            slopes.append(-c / (1 + bets[-1] * c))
            step = slopes[-1] / (1 + sum(z * z for z in slopes)) * 2 / (2 - math.log(3))
            bets.append(min(max(bets[-1] - step, -0.5), 0.5))
        else:
            bets.append(sum(c for c, _ in coins) / (len(coins) + 1))
    assert np.allclose(peers.betting(scores, ALPHA, newton), q, rtol=1e-7)


def test_the_universal_portfolio_is_the_mean_of_all_fixed_ones():
    """Over shares b with density 1/(pi sqrt(b (1 - b))): its wealth by integration, its bet from that of the next."""
    scores = np.abs(np.random.default_rng(3).standard_normal(12))
    angle = (np.arange(20_000) + 0.5) / 20_000 * np.pi
    b = np.sin(angle / 2) ** 2  # equal steps of the angle have this density
    wealths, found = np.ones(b.size), peers.portfolio(scores, ALPHA)
    for s, q in zip(scores, found, strict=True):
        share = (wealths * b).mean() / wealths.mean()
        stake = (share / ALPHA - (1 - share) / (1 - ALPHA)) * wealths.mean()
        assert q == pytest.approx(max(stake, 0.0), rel=1e-4, abs=1e-6)
        wealths = wealths * (b / ALPHA if s > stake else (1 - b) / (1 - ALPHA))


@pytest.mark.parametrize("kind", ["eci", "integral", "cop"])
def test_the_learners_with_a_correction(scores, kind):
    rate, T = 0.1, scores.size
    q, x = np.zeros(T + 1), np.zeros(T + 1)
    r = np.zeros(T)
    for t in range(T):
        past = scores[max(0, t - 100) : t]
        eta = rate * np.ptp(past) if t else rate
        r[t] = scores[t] - q[t]
        x[t + 1] = x[t] - eta * (ALPHA if q[t] >= scores[t] else ALPHA - 1)
        f = r[:t] / (2 + np.exp(r[:t]) + np.exp(-r[:t]))
        if kind == "eci":
            extra = r[t] / (2 + math.exp(r[t]) + math.exp(-r[t]))
        elif kind == "integral":
            weight = 0.95 ** (t - np.arange(1.0, t + 1))
            extra = (weight * f).sum() / weight.sum() if t else 0.0
        else:
            extra = -0.5 * (np.mean(past <= x[t + 1]) - (1 - ALPHA)) if t >= 100 else 0.0
        q[t + 1] = x[t + 1] + eta * extra
    found = peers.cop(scores, ALPHA, rate) if kind == "cop" else peers.eci(scores, ALPHA, rate, kind == "integral")
    assert np.allclose(found, np.maximum(q[:-1], 0.0), rtol=1e-9, atol=1e-12)


# ------------------------------------------------------------------------------------------------------------ two sides


def test_a_run_with_sides_is_what_it_says(results):
    y_hat, y = cases.draw("levels", FEW.horizon)
    low, high = ConformalTracker(0.9).run(y_hat, y)[100:].T
    y = y[100:]
    score = high - low + 2 / ALPHA * (np.maximum(low - y, 0) + np.maximum(y - high, 0))
    assert results["sides/levels/one"]["score"] == pytest.approx(score.mean())
    assert results["sides/levels/one"]["coverage"] == pytest.approx(np.mean((low <= y) & (y <= high)))
