"""The pictures: the right numbers on the right Axes, nothing else touched; the recorder plays as `play` does."""

import importlib.util
import math
import pathlib
import signal
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import thalweg as tw
from tests.worlds import slow_where
from thalweg.errors import InputError, MissingExtraError
from thalweg.learners.base import Queries
from thalweg.regret import plots
from thalweg.regret.measures import IntervalRegret, WorstInterval

matplotlib = pytest.importorskip("matplotlib", reason="pictures need pip install 'thalweg[lab]'")

T, DIM = 150, 3
BALL = tw.domains.Ball(DIM, radius=2.0)
ELLIPSOID = tw.domains.Ellipsoid([1.0, 2.0, 4.0], bound=4.0)
BOX = tw.domains.Custom(lambda x: np.clip(x, -1.0, 1.0), DIM, center=np.zeros(DIM), radius=math.sqrt(3.0))


@pytest.fixture(scope="module")
def problem():
    return tw.problems.piecewise_stationary(BALL, T, 5, rng=3)


@pytest.fixture(scope="module")
def run(problem):
    return tw.play(tw.SOGD(BALL), problem)


@pytest.fixture(scope="module")
def record(problem):
    return plots.record_cover(
        tw.SACS(ELLIPSOID, loss_bound=50.0, smoothness=9.0, threshold=4.0, gradients="own"), problem
    )


def by_length(*rows, kind="adaptive"):
    """(length, regret) or (length, regret, exact) -> what `adaptive` returns."""
    made = [WorstInterval(row[0], row[1], 0.0, 0, row[0], 1, row[2] if len(row) > 2 else True) for row in rows]
    return IntervalRegret(tuple(made), kind)


def certificate(*rows):
    """(start, stop, bound) -> something with rows, as a certificate has."""
    made = [SimpleNamespace(start=a, stop=b, regret=0.0, bound=c, against="best fixed") for a, b, c in rows]
    return SimpleNamespace(rows=made, holds=True, slack=1.0, name="a theorem")


def lines(ax):
    """Line data by label."""
    return {line.get_label(): line.get_xydata() for line in ax.get_lines() if not line.get_label().startswith("_")}


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


# ---------------------------------------------------------------------------------------------------------- manners


@pytest.fixture(scope="module")
def drawers(problem, run, record):
    measured = tw.regret.adaptive(run, problem, BALL)
    return {
        "cumulative_loss": lambda **k: plots.cumulative_loss(
            {"one": run, "several": [run.losses, 2 * run.losses]},
            comparators={"best fixed": tw.regret.best_fixed(problem, BALL)},
            **k,
        ),
        "regret_over_time": lambda **k: plots.regret_over_time(run, problem, bound=1.0, **k),
        "regret_by_length": lambda **k: plots.regret_by_length(measured, bound={1: 9.0, T: 99.0}, **k),
        "cover": lambda **k: plots.cover(record, **k),
    }


NAMES = ["cumulative_loss", "regret_over_time", "regret_by_length", "cover"]


@pytest.mark.parametrize("name", NAMES)
def test_a_new_figure_touches_nothing(drawers, name, capfd, monkeypatch):
    import matplotlib.pyplot as plt

    def show(*_, **__):
        raise AssertionError("a window")

    monkeypatch.setattr(plt, "show", show)
    monkeypatch.setattr(matplotlib.figure.Figure, "show", show)
    before, figures = dict(matplotlib.rcParams), plt.get_fignums()
    ax = drawers[name]()
    ax.figure.canvas.draw()
    assert isinstance(ax, matplotlib.axes.Axes)
    assert dict(matplotlib.rcParams) == before
    assert plt.get_fignums() == figures
    assert capfd.readouterr() == ("", "")
    assert ax.get_title()
    assert ax.get_xlabel()
    assert ax.get_ylabel()


@pytest.mark.parametrize("name", NAMES)
def test_axes_of_pyplot(drawers, name):
    import matplotlib.pyplot as plt

    backend = matplotlib.get_backend()
    plt.switch_backend("agg")
    try:
        figure, (left, right) = plt.subplots(1, 2)
        left.set_title("mine")
        left.set_xlabel("my x")
        assert drawers[name](ax=left) is left
        figure.canvas.draw()
        assert left.get_title() == "mine"
        assert left.get_xlabel() == "my x"
        assert not right.has_data()
        assert plt.gcf() is figure
        assert len(plt.get_fignums()) == 1
    finally:
        plt.close("all")
        plt.switch_backend(backend)


def test_pyplot_is_never_loaded():
    code = """
import sys, thalweg as tw
from thalweg.regret import plots
assert "matplotlib" not in sys.modules, "imported before it is needed"
box = tw.domains.Box([-1.0, -1.0], [1.0, 1.0])
problem = tw.problems.piecewise_stationary(box, 40, 2, rng=0)
record = plots.record_cover(tw.SACS(box, loss_bound=50.0, smoothness=9.0, gradients="own", threshold=1.0), problem)
assert "matplotlib" not in sys.modules, "imported to record"
for ax in (
    plots.cumulative_loss({"SACS": record}),
    plots.regret_over_time(record, problem, bound=3.0),
    plots.regret_by_length(tw.regret.interval_dynamic(record.run, problem)),
    plots.cover(record),
):
    ax.figure.canvas.draw()
assert "matplotlib.pyplot" not in sys.modules, "pyplot"
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("name", NAMES)
def test_missing_matplotlib(drawers, name, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=rf"{name} needs matplotlib.*pip install 'thalweg\[lab\]'"):
        drawers[name]()


@pytest.mark.parametrize("name", NAMES)
def test_an_array_of_axes_is_refused(drawers, name):
    with pytest.raises(InputError, match=f"'ax' parameter of {name} must be one matplotlib Axes"):
        drawers[name](ax=np.array([None, None]))


@pytest.mark.parametrize("name", ["cumulative_loss", "regret_over_time", "regret_by_length"])
def test_our_legend_is_beside_the_data(drawers, name):
    ax = drawers[name]()
    ax.figure.canvas.draw()
    box = ax.get_legend().get_window_extent()
    assert box.x0 >= ax.get_window_extent().x1
    assert box.x1 <= ax.figure.bbox.x1 + 1  # and inside the figure
    assert box.y0 >= ax.figure.bbox.y0


# ----------------------------------------------------------------------------------------------------------- curves


def test_cumulative_loss(problem, run):
    best = tw.regret.best_fixed(problem, BALL)
    losses = np.random.default_rng(0).random((3, T))
    ax = plots.cumulative_loss({"SOGD": run, "three": list(losses)}, comparators={"best fixed": best})
    drawn = lines(ax)
    t = np.arange(1, T + 1)
    np.testing.assert_array_equal(drawn["SOGD"], np.column_stack([t, np.cumsum(run.losses)]))
    np.testing.assert_array_equal(drawn["best fixed"], np.column_stack([t, np.cumsum(best.losses)]))
    sums = [[sum(row[: k + 1]) for k in range(T)] for row in losses]
    np.testing.assert_allclose(drawn["three"][:, 1], np.mean(sums, axis=0), rtol=1e-12)
    (band,) = ax.collections  # only where there are several runs
    edge = band.get_paths()[0].vertices
    for k in (0, 60, T - 1):
        mean, spread = np.mean([row[k] for row in sums]), np.std([row[k] for row in sums], ddof=1)
        heights = edge[edge[:, 0] == k + 1, 1]
        np.testing.assert_allclose([heights.min(), heights.max()], [mean - spread, mean + spread], rtol=1e-12)
    styles = {line.get_label(): line.get_linestyle() for line in ax.get_lines()}
    assert styles == {"SOGD": "-", "three": "-", "best fixed": "--"}
    assert len({line.get_color() for line in ax.get_lines()}) == 3
    assert "mean of 3 runs" in ax.get_title()
    assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "linear")
    log = plots.cumulative_loss({"SOGD": run}, log=True)
    assert (log.get_xscale(), log.get_yscale()) == ("log", "log")
    np.testing.assert_array_equal(lines(log)["SOGD"], drawn["SOGD"])


def test_cumulative_loss_of_a_table_of_runs():
    losses = np.random.default_rng(0).random((4, 20))
    both = plots.cumulative_loss({"table": losses, "list": [list(row) for row in losses]})
    np.testing.assert_array_equal(lines(both)["table"], lines(both)["list"])
    assert "mean" not in plots.cumulative_loss({"one": [1.0, 2.0]}).get_title()


def test_many_lines_can_be_told_apart():
    ax = plots.cumulative_loss({str(k): [1.0, 1.0 + k] for k in range(14)})
    assert len({(line.get_color(), line.get_linestyle()) for line in ax.get_lines()}) == 14


def test_regret_over_time(problem, run):
    planted = np.array([f.value(u) for f, u in zip(problem, problem.comparators, strict=True)])
    regret = [sum(run.losses[: t + 1]) - sum(planted[: t + 1]) for t in range(T)]
    best = tw.regret.best_fixed(problem, BALL)
    t = np.arange(1, T + 1)
    for bound, heights in ((30.0, np.full(T, 30.0)), (lambda t: 3.0 * t, 3.0 * t), (t**0.5, t**0.5)):
        drawn = lines(plots.regret_over_time(run, problem, bound=bound))
        np.testing.assert_allclose(drawn["regret"], np.column_stack([t, regret]), rtol=1e-9)
        np.testing.assert_array_equal(drawn["bound"], np.column_stack([t, heights]))
    drawn = lines(plots.regret_over_time(run.losses, problem, best))
    assert set(drawn) == {"regret"}
    np.testing.assert_allclose(drawn["regret"][:, 1], np.cumsum(run.losses - best.losses), rtol=1e-9)
    assert drawn["regret"][-1, 1] == pytest.approx(tw.regret.static(run, problem, BALL).value)


def test_two_regrets_on_one_axes(problem, run):
    ax = plots.regret_over_time(run, problem, bound=100.0, label="SOGD")
    plots.regret_over_time(run.losses / 2, problem, bound=200.0, label="half", ax=ax)
    colors = {line.get_label(): line.get_color() for line in ax.get_lines()}
    assert legend(ax) == ["SOGD", "bound, SOGD", "half", "bound, half"]
    assert colors["SOGD"] == colors["bound, SOGD"] != colors["half"] == colors["bound, half"]


def test_a_violated_bound_is_marked(problem, run):
    final = tw.regret.dynamic(run, problem).value
    assert "above the bound" not in legend(plots.regret_over_time(run, problem, bound=2 * final))
    ax = plots.regret_over_time(run, problem, bound=final / 2)
    assert "above the bound" in legend(ax)
    (area,) = ax.collections
    regret = lines(ax)["regret"]
    assert area.get_paths()[0].vertices[:, 0].min() >= regret[regret[:, 1] > final / 2, 0].min() - 1


def test_a_far_bound_makes_the_axis_logarithmic(problem, run):
    top = lines(plots.regret_over_time(run, problem))["regret"][:, 1].max()
    assert plots.regret_over_time(run, problem, bound=5 * top).get_yscale() == "linear"
    assert plots.regret_over_time(run, problem, bound=50 * top).get_yscale() == "log"
    assert plots.regret_over_time(run, problem, bound=np.full(T, np.inf)).get_yscale() == "linear"
    below = plots.regret_over_time(np.zeros(T), problem, bound=50 * top)  # regret <= 0: nothing to show on such an axis
    assert below.get_yscale() == "linear"


def test_regret_by_length(problem, run):
    measured = tw.regret.adaptive(run, problem, BALL)
    moving = tw.regret.interval_dynamic(run, problem)
    ax = plots.regret_by_length(measured, moving)
    drawn = lines(ax)
    for one, name in ((measured, "adaptive regret"), (moving, "interval dynamic regret")):
        np.testing.assert_array_equal(drawn[name][:, 0], [row.length for row in one])
        np.testing.assert_array_equal(drawn[name][:, 1], [row.regret if row.regret > 0 else np.nan for row in one])
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert ax.xaxis.get_transform().base == 2
    ax.figure.canvas.draw()
    assert "64" in [label.get_text() for label in ax.get_xticklabels()]  # plain numbers
    assert set(lines(plots.regret_by_length(measured, measured))) == {"adaptive regret 1", "adaptive regret 2"}
    assert set(lines(plots.regret_by_length(measured, labels=["mine"]))) == {"mine"}


def test_regret_by_length_says_what_it_cannot_show():
    ax = plots.regret_by_length(by_length((1, 2.0), (2, -1.0), (4, 3.0, False)), by_length((1, 1.0), (2, 0.0)))
    assert legend(ax)[2:] == ["on a grid: may be larger", "regret ≤ 0"]
    marks = {marker: [ln for ln in ax.get_lines() if ln.get_marker() == marker] for marker in "ov"}
    assert [line.get_xdata().tolist() for line in marks["v"]] == [[2.0], [2.0]]
    heights = [line.get_ydata()[0] for line in marks["v"]]  # of the Axes, one above the other
    assert 0 < heights[0] < heights[1] < 0.1
    full, grid, other = marks["o"]
    assert full.get_xydata().tolist() == [[1.0, 2.0]]
    assert grid.get_xydata().tolist() == [[4.0, 3.0]]
    assert (full.get_markerfacecolor(), grid.get_markerfacecolor()) == (full.get_color(), "white")
    assert other.get_xydata().tolist() == [[1.0, 1.0]]
    assert len(legend(plots.regret_by_length(by_length((1, 2.0), (2, 3.0))))) == 1


def test_bounds_by_length():
    measured = by_length((1, 2.0), (4, 3.0))
    ax = plots.regret_by_length(measured, bound={4: 9.0, 1: 5.0})
    assert lines(ax)["bound"].tolist() == [[1.0, 5.0], [4.0, 9.0]]
    assert not ax.collections
    rows = certificate((0, 4, 9.0), (4, 8, 7.0), (8, 12, 8.0), (2, 3, 5.0))
    for bound in (rows, rows.rows):
        ax = plots.regret_by_length(measured, bound=bound)
        (label,) = set(lines(ax)) - {"adaptive regret"}
        assert label == "bound: smallest to largest"
        assert lines(ax)[label].tolist() == [[1.0, 5.0], [4.0, 7.0]]
        (band,) = ax.collections
        vertices = band.get_paths()[0].vertices
        assert vertices[vertices[:, 0] == 4.0, 1].max() == 9.0
    single = plots.regret_by_length(measured, bound=certificate((0, 4, 9.0), (2, 3, 5.0)))
    assert lines(single)["bound"].tolist() == [[1.0, 5.0], [4.0, 9.0]]


@pytest.mark.parametrize("bound", [3.0, "high", [1.0, 2.0], {}, certificate()])
def test_regret_by_length_refuses_a_bound(bound):
    with pytest.raises(InputError, match="'bound' parameter of regret_by_length"):
        plots.regret_by_length(by_length((1, 2.0)), bound=bound)


def test_what_cannot_be_drawn_is_refused(problem, run):
    for call, told in (
        (lambda: plots.regret_by_length(), r"needs the result of thalweg\.regret\.adaptive"),
        (lambda: plots.regret_by_length([1.0, 2.0]), r"needs the result of thalweg\.regret\.adaptive"),
        (lambda: plots.regret_by_length(by_length((1, 2.0)), labels="a"), "must hold 1 names"),
        (lambda: plots.regret_over_time(run, problem, bound=np.ones(T - 1)), rf"'bound' .* must have shape \({T},\)"),
        (lambda: plots.cumulative_loss({"SOGD": run}, log="y"), "'log' parameter of cumulative_loss must be True or"),
        (lambda: plots.cumulative_loss([1.0, 2.0]), "must map names to runs"),
        (lambda: plots.cumulative_loss({}), "at least one run"),
        (lambda: plots.cumulative_loss({"a": "losses"}), r"runs\['a'\]"),
        (lambda: plots.cumulative_loss({"a": [1.0, math.nan]}), "must be finite"),
        (lambda: plots.cumulative_loss({"a": np.zeros((2, 2, 2))}), "losses"),
        (lambda: plots.cumulative_loss({"a": [np.ones(3), np.ones(4)]}), r"same length. Got \[3, 4\]"),
        (lambda: plots.cumulative_loss({"a": np.ones(3)}, comparators={"u": np.ones(2)}), "'u' has 2 rounds, .* run 3"),
        (lambda: plots.cover(run), "cover draws the result of record_cover"),
    ):
        with pytest.raises(InputError, match=told):
            call()


# ----------------------------------------------------------------------------------------------------- the recorder

G, L = 40.0, 9.0
LEARNERS = {
    "EfficientAdaptive": lambda: tw.EfficientAdaptive(ELLIPSOID, T, G, L, threshold=lambda m: 2.0),
    "EfficientAdaptive, one expert": lambda: tw.EfficientAdaptive(ELLIPSOID, T, G, L),
    "EfficientIntervalDynamic": lambda: tw.EfficientIntervalDynamic(ELLIPSOID, T, G, L, threshold=lambda m: 3.0 + m),
    "EfficientCBCE": lambda: tw.EfficientCBCE(ELLIPSOID, gradient_bound=G),
    "EfficientAOA": lambda: tw.EfficientAOA(BALL, gradient_bound=G),
    "AOA": lambda: tw.AOA(ELLIPSOID, gradient_bound=G, horizon=T, gradients="own"),
    "CBCE": lambda: tw.CBCE(ELLIPSOID, gradient_bound=G, cover="compact", gradients="own"),
    "SACS": lambda: tw.SACS(ELLIPSOID, loss_bound=200.0, smoothness=L, threshold=2.0, gradients="own"),
    "SACS, python": lambda: tw.SACS(BOX, loss_bound=200.0, smoothness=L, threshold=2.0, gradients="own"),
    "twice": lambda: tw.OneProjection(BALL, lambda Y: tw.EfficientAdaptive(Y, T, G, L, threshold=lambda m: 2.0)),
}


def ensemble_of(learner):
    while not isinstance(learner, tw.Cover):
        learner = learner.inner
    return learner


@pytest.mark.parametrize("every", [None, 1, 40])
@pytest.mark.parametrize("name", slow_where(lambda name: name == "twice", [(name,) for name in LEARNERS]))
def test_the_recorder_is_one_play_and_tells_the_truth(problem, name, every):
    learner, alone, slow = (LEARNERS[name]() for _ in range(3))
    record = plots.record_cover(learner, problem, every=every)

    # The run is that of one play, to the last bit, and so is the learner after it.
    run = tw.play(alone, problem)
    np.testing.assert_array_equal(record.losses, run.losses)
    assert record.run.queries == run.queries
    assert (record.run.rounds, record.run.interrupted, record.run.clipped) == (T, False, run.clipped)
    mine, theirs = learner.state(), alone.state()
    assert mine.keys() == theirs.keys()
    for key in mine:
        np.testing.assert_array_equal(mine[key], theirs[key], err_msg=key)

    # Births, deaths and weights are those of a learner that is stopped after every round.
    ensemble = ensemble_of(slow)
    alive = {(e.level, e.marker): (e.start, e.stop) for e in record.experts}
    assert len(alive) == len(record.experts)
    seen, markers = set(), []
    for t in range(T):
        born = ensemble.state()["born"]
        slots = {(int(k), int(born[k])) for k in np.flatnonzero(born)}
        assert {who for who, (a, b) in alive.items() if a <= t < b} == slots
        seen |= slots
        if ensemble.marker_count > len(markers):
            markers.append(t)
        at = np.flatnonzero(record.moments == t)
        assert at.size <= 1
        for j in at:
            here = {(k, int(i)) for k, i in enumerate(record.born[j]) if i}
            assert here == slots
            full = np.zeros(record.weights.shape[1])
            full[[k for k, _ in sorted(slots)]] = ensemble.weights
            np.testing.assert_allclose(record.weights[j], full, rtol=1e-9, atol=1e-12)
        slow.step(problem[t])
    assert seen == set(alive)
    assert record.markers.tolist() == markers
    assert record.levels == max(k for k, _ in alive) + 1 == record.weights.shape[1]
    np.testing.assert_allclose(record.weights.sum(axis=1), 1.0, rtol=1e-9)
    assert (record.weights >= 0).all()

    # Looked at often enough, and soon after each marker.
    gaps = np.diff([*record.moments, T])
    assert record.moments[0] == 0
    assert gaps.max() <= (every or 1)
    for s in markers:
        assert s + 2 >= T or ((s <= record.moments) & (record.moments <= s + 2)).any()
    assert every != 40 or len(markers) > 60 or record.moments.size < T // 2
    assert record.name == type(learner).__name__
    assert f"{len(markers)} markers in {T} rounds" in repr(record)


def test_about_400_moments():
    problem = tw.problems.LinearRegression(np.ones((5000, 1)), np.ones(5000))
    line = tw.domains.Box([-1.0], [1.0])
    calm = plots.record_cover(tw.SACS(line, loss_bound=10.0, smoothness=1.0, threshold=100.0, gradients="own"), problem)
    assert calm.markers.tolist() == [0]
    assert 380 <= calm.moments.size <= 420
    assert set(np.diff(calm.moments) % 2) == {1}  # odd: a compact cover is looked at in even and in odd rounds
    busy = plots.record_cover(tw.SACS(line, loss_bound=10.0, smoothness=1.0, cover="compact", gradients="own"), problem)
    alive = (busy.born > 0).mean(axis=0)
    assert (np.abs(alive[:8] - 0.5) < 0.05).all()


def test_markers_that_the_learner_forgets():
    rounds = 80_000
    problem = tw.problems.LinearRegression(np.ones((rounds, 1)), np.tile([-5.0, 5.0], rounds // 2))
    learner = tw.SACS(tw.domains.Box([-1.0], [1.0]), loss_bound=20.0, smoothness=1.0, threshold=1e-3, gradients="own")
    record = plots.record_cover(learner, problem, every=rounds)
    assert len(learner.markers) < rounds  # or this test tests nothing
    assert record.markers.tolist() == list(range(rounds))
    assert record.moments.size < 200


def test_ctrl_c_ends_the_record():
    asked = []

    def value(t, x):
        if t == 30 and not asked:  # a second one would not wait for the end of the round
            asked.append(t)
            signal.raise_signal(signal.SIGINT)
        return float((x @ x) / 2)

    problem = tw.problems.FromFunctions(value, lambda t, x: x, shape=DIM, horizon=100)
    record = plots.record_cover(
        tw.SACS(ELLIPSOID, loss_bound=200.0, smoothness=L, cover="compact", gradients="own"), problem, every=20
    )  # looks in every round
    assert (record.run.rounds, record.run.interrupted) == (31, True)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert record.losses.shape == (31,)
    assert record.markers.tolist() == list(range(31))
    assert record.moments.max() < 31
    assert max(e.stop for e in record.experts) == 31
    plots.cover(record).figure.canvas.draw()


def test_an_error_names_its_round():
    losses = [tw.losses.Squared(np.ones(DIM), 1.0)] * 57 + [tw.losses.Squared(np.ones(DIM), 1e9)] * 3
    with pytest.raises(InputError) as caught:
        plots.record_cover(tw.EfficientCBCE(BALL, gradient_bound=G), tw.problems.FromLosses(losses), every=10)
    first, second = caught.value.__notes__
    inside, begin = (int(note.split("round ")[-1].split()[0]) for note in (first, second))
    assert begin + inside == 57


def test_the_recorder_refuses(problem):
    begun, fresh = LEARNERS["SACS"](), LEARNERS["SACS"]()
    tw.play(begun, problem[:3])
    endless = tw.problems.FromFunctions(lambda t, x: 0.0, lambda t, x: 0 * x, shape=DIM)
    for learner, rounds, options, told in (
        (tw.SOGD(BALL), problem, {}, "needs a learner over a cover"),
        (tw.EfficientDynamic(BALL, T, G, L), problem, {}, "needs a learner over a cover"),
        (begun, problem, {}, r"has begun. Call learner.reset\(\) first"),
        (fresh, problem, {"every": 0}, "'every' parameter of record_cover"),
        (fresh, endless, {}, "a problem that ends"),
    ):
        with pytest.raises(InputError, match=told):
            plots.record_cover(learner, rounds, **options)
    assert fresh.rounds == 0


# --------------------------------------------------------------------------------------------------- the cover drawn


def bars(ax):
    """Frames by level: (start, stop) of each."""
    found = {}
    for collection in ax.collections:
        if isinstance(collection, matplotlib.collections.PolyCollection):
            for path in collection.get_paths():
                x, y = path.vertices[:, 0], path.vertices[:, 1]
                found.setdefault(round(y.mean()), []).append((int(x.min()), int(x.max())))
    return {k: sorted(set(spans)) for k, spans in found.items()}


def meshes(ax):
    """Edges and cells by level."""
    found = {}
    for mesh in ax.collections:
        if isinstance(mesh, matplotlib.collections.QuadMesh):
            corners = mesh.get_coordinates()
            found[round(corners[:, 0, 1].mean())] = corners[0, :, 0], np.ma.asarray(mesh.get_array()).ravel()
    return found


def names(ax):
    """Marker names by place."""
    (top,) = ax.child_axes
    return {int(x): label.get_text() for x, label in zip(top.get_xticks(), top.get_xticklabels(), strict=True)}


def strokes(ax):
    """Where the thin vertical lines stand, a list a collection."""
    found = [c for c in ax.collections if isinstance(c, matplotlib.collections.LineCollection)]
    return [[int(segment[0, 0]) for segment in c.get_segments()] for c in found]


@pytest.mark.parametrize("name", ["EfficientAdaptive", "EfficientCBCE", "EfficientAdaptive, one expert"])
@pytest.mark.parametrize("every", [1, 40])
def test_cover(problem, name, every):
    record = plots.record_cover(LEARNERS[name](), problem, every=every)
    ax = plots.cover(record)
    framed = bars(ax)
    assert set(meshes(ax)) == set(range(record.levels))
    for k, (edges, cells) in meshes(ax).items():
        mine = [e for e in record.experts if e.level == k]
        assert framed[k] == sorted((e.start, e.stop) for e in mine)
        assert (np.diff(edges) > 0).all()
        for expert in mine:
            assert {expert.start, expert.stop} <= set(edges)
        for a, b, cell in zip(edges[:-1], edges[1:], cells, strict=True):
            living = [e for e in mine if e.start <= a and b <= e.stop]
            looked = [j for j, i in enumerate(record.born[:, k]) if living and i == living[0].marker]
            if looked:  # the colour of a piece is the weight seen at its start, or the first one that was seen
                before = [j for j in looked if record.moments[j] <= a]
                assert cell == record.weights[before[-1] if before else looked[0], k]
            else:
                assert cell is np.ma.masked
    assert [label.get_text() for label in ax.get_yticklabels()] == [f"{2**k:,}" for k in range(record.levels)]
    assert ax.get_xlim() == (0, T)
    low, high = ax.get_ylim()
    assert low < high  # long-lived on top
    assert f"{record.markers.size} marker" in ax.get_title()
    bar = [other for other in ax.figure.axes if other is not ax]
    assert [other.get_ylabel() for other in bar] == ["weight in the decision"]


def test_marker_names_and_lines():
    few = fake(np.array([0, 10, 40, 80, 120, 121, 122, 123]), 200)
    ax = plots.cover(few)
    assert names(ax)[0] == "$s_{1}$"
    assert names(ax)[123] == "$s_{8}$"  # the longest-lived of those at the same place
    assert not {120, 121, 122} & set(names(ax))
    across, ticks = strokes(ax)
    assert across == ticks == few.markers.tolist()

    rng = np.random.default_rng(0)
    many = fake(np.sort(rng.choice(np.arange(1, 20_000), 499, replace=False)) * (np.arange(499) > 0), 20_000)
    ax = plots.cover(many)
    places = sorted(names(ax))
    assert 6 <= len(places) <= 20
    assert min(np.diff(places)) > 0.05 * 20_000
    for place, label in names(ax).items():
        assert many.markers[int(label[4:-2]) - 1] == place
    assert f"$s_{{{256}}}$" in names(ax).values()
    (ticks,) = strokes(ax)
    assert ticks == many.markers.tolist()


def fake(markers, rounds, kind="compact", seed=0):
    """A record with given markers and random weights, looked at in every tenth round."""
    moments = np.arange(0, rounds, 10)
    m = np.searchsorted(markers, moments, side="right")
    K = markers.size.bit_length()
    level = 2 ** np.arange(K)
    born = m[:, None] // level * level
    if kind == "compact":
        born = np.where(m[:, None] & level, m[:, None] // level * level, 0)
    weights = np.random.default_rng(seed).random(born.shape) * (born > 0)
    weights /= weights.sum(axis=1, keepdims=True)
    run = tw.Run(np.zeros(rounds), Queries(), 0.0)
    return plots.CoverRecord(run, "Fake", kind, markers, moments, born, weights)


def test_crowded_rows_are_bands():
    record = fake(np.arange(4000), 4000, kind="geometric")
    ax = plots.cover(record)
    edges, cells = meshes(ax)[0]
    assert edges[-1] == 4000
    assert cells.size == 200
    assert "mean of many experts" in ax.get_title()
    np.testing.assert_allclose(cells[1], record.weights[2:4, 0].mean())  # 400 moments in 200 pieces
    assert 0 not in bars(ax)
    assert len(bars(ax)[6]) == 4000 // 64
    edges, cells = meshes(ax)[4]  # 250 experts: bars, though without frames
    assert set(record.lives(4)[1]) <= set(edges)
    assert np.ma.count_masked(cells) == 1  # the last one lives for one round, and nobody looked

    gaps = fake(np.arange(4000), 4000, kind="compact")
    _, cells = meshes(plots.cover(gaps))[1]  # in half of the rounds nobody of this level lives
    (alive,) = np.flatnonzero(gaps.born[2:4, 1])
    assert cells[1] == gaps.weights[2 + alive, 1]


# ------------------------------------------------------------------------------------------------------- the script


def test_the_pictures_of_the_documents(tmp_path, capsys):
    path = pathlib.Path(__file__).parents[2] / "docs" / "regret_pictures.py"
    spec = importlib.util.spec_from_file_location("regret_pictures", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    files = module.main(["--small", "--out", str(tmp_path)])
    assert len(files) == 7
    for file in files:
        assert file.read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out.split() == [str(file) for file in files]


def test_a_certificate_belongs_to_its_run(problem):
    runs = {}
    for seed in (1, 2):
        learner = tw.Tracker(BALL)
        part = tw.problems.piecewise_stationary(BALL, 60, 2, rng=seed)
        paid = tw.play(learner, part, decisions=True)
        runs[seed] = tw.regret.adaptive(paid, part, BALL), tw.regret.certify(learner, part, paid)
    plots.regret_by_length(runs[1][0], bound=runs[1][1])
    plots.regret_by_length(runs[1][0], runs[2][0], bound=runs[1][1])  # one of them is its own
    plots.regret_by_length(runs[1][0], bound=runs[2][1].rows)  # a selection of rows may be anybody's
    with pytest.raises(InputError, match="the certificate is of another run than the regret"):
        plots.regret_by_length(runs[1][0], bound=runs[2][1])
