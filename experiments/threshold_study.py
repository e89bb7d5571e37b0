"""Thresholds tell the truth: what Algorithm 2 loses or gains with its threshold, restart point and feedback range.

    python experiments/threshold_study.py [--small] [--out DIR] [--jobs N] [--series NAME ...]

`EfficientAdaptive` starts a new expert when the loss since the last marker exceeds C_m. The study plays it with the
printed C_m times 1e-6 .. 1, with both restart points and both feedback ranges, beside other learners, on drifting
regressions and on real series. `docs/thresholds.md` tells what came out.

Writes to DIR: results.csv (a row for each run), about.json (versions, seeds, constants), tables.md and plots. The
seed of a run is a hash of its series and repetition, so adding a learner changes no data. `--small` takes seconds.
Needs: pip install 'thalweg[lab,data]'
"""

from __future__ import annotations

import argparse
import csv
import functools
import hashlib
import importlib
import importlib.metadata
import itertools
import json
import os
import pathlib
import platform
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import thalweg as tw
from thalweg.algorithms import thresholds
from thalweg.errors import MissingExtraError
from thalweg.lab import streams
from thalweg.lab.reproduce import experts as covers
from thalweg.lab.streams import Stream

Array = NDArray[np.float64]
Row = dict[str, Any]

WINDOW = 200  # rounds after a change that count as "after a change"
SCALES = tuple(float(10 ** (k / 2)) for k in range(-12, 1))  # 1e-6 .. 1, two to a decade
SACS_SCALES = tuple(float(10 ** (k / 2)) for k in range(-6, 1))
DELTAS = (1e-4, 1e-2, 1.0, 1e2, 1e4)
CURVES = ("printed", "scale 1e-03", "scale 1e-05", "SACS, default", "EfficientDynamic")


# ---------------------------------------------------------------------------------------------------------- the series


def seed_of(series: str, rep: int) -> int:
    """The seed of a repetition: a hash of its name."""
    return int.from_bytes(hashlib.sha256(f"{series}/rep{rep}".encode()).digest()[:8], "big")


def planted(name: str, rep: int, small: bool) -> Stream:
    """Regressions with a planted model: the paper's, on its ellipsoid, and for the check others, on a ball."""
    on_ball, noisy = name.startswith("ball"), name.endswith("noisy")
    domain = tw.domains.Ball(20) if on_ball else tw.problems.paper_ellipsoid()
    noise = (0.5 if on_ball else 2.0) if noisy else 0.1
    T = 2_000 if small else 200_000 if name == "piecewise_long" else 20_000
    make = functools.partial(streams.planted, name, domain, T, seed_of(name, rep), noise=noise)
    if "piecewise" in name:
        return make(stages=T // (400 if small else 500 if on_ball else 800))
    return make(step=domain.diameter / (np.sqrt(T) if "fast" in name else T))


def real(name: str, rep: int, small: bool) -> Stream:
    """A real series of `thalweg.lab.streams`."""
    return streams.draw(name, horizon=2_000 if small else None)


@dataclass(frozen=True)
class Source:
    """Where a series comes from: what the plots call it, its loader, how often it is drawn.

    The series of the check had no part in the choice of a scale.
    """

    title: str
    draw: Callable[[str, int, bool], Stream]
    reps: int = 1
    check: bool = False


SOURCES = {
    "piecewise": Source("jumps", planted, 5),
    "piecewise_long": Source("jumps, long run", planted, 3),
    "gradual": Source("slow walk: steps of D/T", planted, 5),
    "gradual_fast": Source("fast walk: steps of D/sqrt(T)", planted, 5),
    "polls": Source("real: weighing 5 pollsters", real),
    "glucose": Source("real: calibrating a sensor", real),
    "sea": Source("real: sea temperature, autoregression", real),
    "ball_piecewise": Source("ball, jumps", planted, 5, check=True),
    "ball_piecewise_noisy": Source("ball, jumps, noise 0.5", planted, 5, check=True),
    "ball_fast": Source("ball, fast walk", planted, 5, check=True),
    "ball_fast_noisy": Source("ball, fast walk, noise 0.5", planted, 5, check=True),
    "piecewise_noisy": Source("ellipsoid, jumps, noise 2", planted, 5, check=True),
    "gradual_noisy": Source("ellipsoid, slow walk, noise 2", planted, 5, check=True),
    "water": Source("real: flow of water, autoregression", real, check=True),
}


def need(module: str, install: str) -> Any:
    """Import an optional module, or say how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtraError(
            f"threshold_study needs {module.partition('.')[0]}. Install it with: pip install {install}"
        ) from None


# -------------------------------------------------------------------------------------------------------- the learners


@dataclass(frozen=True)
class Contender:
    """A learner to play, by name; the other fields are for `EfficientAdaptive`."""

    name: str
    group: str = "others"
    scale: float = 1.0
    restart: str = "center"
    feedback: str = "bound"
    delta: float = 1.0
    looseness: float = 1.0  # how many times too large a gradient bound the learner is given; same thresholds


def contenders(small: bool) -> list[Contender]:
    """Everything that is played on every series."""
    scales = (1e-6, 1e-5, 1e-4, 1e-3, 1.0) if small else SCALES
    found = [
        Contender(_name(s), "scale", s, restart, feedback)
        for s in scales
        for restart in ("center", "current")
        for feedback in ("bound", "observed")
    ]
    for delta in (1.0, 1e2) if small else DELTAS:
        for s in (1.0, 1e-3, 1e-4):
            for restart in ("center", "current"):
                found.append(Contender(_name(s), "delta", s, restart, delta=delta))
    for s in (1e-3, 1e-4, 1e-5):
        found += [Contender(_name(s), "loose", s, feedback=f, looseness=100.0) for f in ("bound", "observed")]
    found += [Contender(f"SACS, scale {s:.0e}", scale=s) for s in ((1e-2,) if small else SACS_SCALES[:-1])]
    names = ("proof", "printed, R = D", "5 x first 200", "one SOGD in Y", "SACS, default", "SACS, compact", "CBCE",
             "EfficientCBCE", "EfficientDynamic", "SOGD", "OGD", "best fixed", "planted")  # fmt: skip
    return found + [Contender(name) for name in names]


def _name(scale: float) -> str:
    return "printed" if scale == 1 else f"scale {scale:.0e}"


def printed_threshold(series: Stream, R: float | None = None) -> Callable[[int], float]:
    """m -> C_m of Theorem 4 as printed, with delta = 1."""
    return functools.partial(
        thresholds.adaptive_paper,
        T=len(series.problem),
        G=series.gradient_bound,
        L=series.smoothness,
        R=series.domain.surrogate.radius if R is None else R,
        delta=1.0,
    )


def build(contender: Contender, series: Stream) -> tw.Learner:
    """A fresh learner for the series."""
    X, G, L, B = series.domain, series.gradient_bound, series.smoothness, series.loss_bound
    T = len(series.problem)
    adaptive = functools.partial(tw.EfficientAdaptive, X, T, contender.looseness * G, L)
    name = contender.name
    if contender.group in ("scale", "delta", "loose"):
        C = printed_threshold(series)
        return adaptive(
            threshold=lambda m: contender.scale * C(m),
            restart=contender.restart,
            feedback_range=contender.feedback,
            delta=contender.delta,
        )
    if name.startswith("SACS, scale"):
        C_sacs = thresholds.sacs(L=L, D=X.diameter, delta=1.0)
        return tw.SACS(X, B, L, threshold=contender.scale * C_sacs, horizon=T)
    if name == "5 x first 200":
        # One expert is alone in these rounds, as C is larger than what it pays in them. So this can be done online.
        first = tw.play(adaptive(), series.problem, rounds=200).total_loss
        return adaptive(threshold=lambda m: 5 * first * np.log(1 + 2 * m) / np.log(3))
    makers: dict[str, Callable[[], tw.Learner]] = {
        "proof": lambda: adaptive(threshold="proof"),
        "printed, R = D": lambda: adaptive(surrogate=tw.domains.Ball(X.shape, radius=X.diameter)),
        "one SOGD in Y": lambda: tw.OneProjection(X, lambda Y: tw.SOGD(Y, scale=Y.radius)),
        "SACS, default": lambda: tw.SACS(X, B, L, horizon=T),
        "SACS, compact": lambda: tw.SACS(X, B, L, cover="compact", horizon=T),
        "CBCE": lambda: tw.CBCE(X, G, horizon=T),
        "EfficientCBCE": lambda: tw.EfficientCBCE(X, G, horizon=T),
        "EfficientDynamic": lambda: tw.EfficientDynamic(X, T, G, L, loss_bound=B),
        "SOGD": lambda: tw.SOGD(X),
        "OGD": lambda: tw.OGD(X, horizon=T, gradient_bound=G),
    }
    return makers[name]()


# ------------------------------------------------------------------------------------------------------------- one run


def run(series: Stream, contender: Contender) -> tuple[Row, list[float]]:
    """Play one contender; what to report, and where the model jumps the mean loss by rounds since a jump."""
    problem = series.problem
    row: Row = {"learner": contender.name, "group": contender.group, "scale": contender.scale}
    row |= {"restart": contender.restart, "feedback": contender.feedback, "delta": contender.delta}
    row["looseness"] = contender.looseness
    if contender.name in ("best fixed", "planted"):
        planted = contender.name == "planted"
        decision = problem.comparators if planted else tw.regret.best_fixed(problem, series.domain).decisions
        assert decision is not None
        losses = problem.losses_of(decision)
        unused = ("markers", "experts_mean", "experts_peak", "projections", "gradients", "values", "seconds")
        row |= dict.fromkeys(unused, float("nan"))
    else:
        learner = build(contender, series)
        played = tw.play(learner, problem)
        losses, T = played.losses, played.rounds
        row |= dict(zip(("markers", "experts_mean", "experts_peak"), experts(learner, T), strict=True))
        row |= {key: getattr(played.queries, key) / T for key in ("projections", "gradients", "values")}
        row["seconds"] = played.seconds
    row |= {"rounds": losses.size, "total_loss": float(losses.sum())}
    wide = min(WINDOW, losses.size // 5)
    sums = np.cumsum(np.r_[0.0, losses])
    row["worst_window"] = float((sums[wide:] - sums[:-wide]).max() / wide)
    curve: list[float] = []
    row["after_change"] = row["later"] = float("nan")
    if series.changes:
        by_stage = losses.reshape(len(series.changes) + 1, -1)[1:]  # every stage but the first starts with a change
        soon = min(WINDOW, by_stage.shape[1] // 2)
        row["after_change"], row["later"] = float(by_stage[:, :soon].mean()), float(by_stage[:, soon:].mean())
        curve = by_stage.mean(axis=0).tolist()
    return row, curve


def experts(learner: Any, T: int) -> tuple[float, float, int]:
    """Markers in rounds 1..T, mean and largest number of experts alive. For a fixed pool: none, and its size."""
    markers, mean, most = covers(learner, T)
    if markers is None or mean is None or most is None:
        size = getattr(learner, "inner", learner).step_sizes.size
        return float("nan"), float(size), int(size)
    return markers, mean, most


def run_batch(name: str, rep: int, batch: Sequence[Contender], small: bool) -> list[tuple[Row, list[float]]]:
    """Several contenders on one series; what a worker does at a time."""
    series = SOURCES[name].draw(name, rep, small)
    if series.problem.comparators is None:
        batch = [contender for contender in batch if contender.name != "planted"]
    source = {"series": name, "rep": rep, "seed": seed_of(name, rep)}
    found = [run(series, contender) for contender in batch]
    return [(source | row, curve) for row, curve in found]


# ----------------------------------------------------------------------------------------------------------- the study


def study(names: Iterable[str], small: bool, jobs: int) -> tuple[list[Row], dict[str, dict[str, list[float]]]]:
    """Play everything; the rows, and mean curves by series and learner."""
    joblib, tqdm = need("joblib", "'thalweg[lab]'"), need("tqdm.auto", "'thalweg[lab]'").tqdm
    everyone = contenders(small)
    tasks = []
    for name in names:
        SOURCES[name].draw(name, 0, True)  # a missing package shows now
        for rep in range(min(2, SOURCES[name].reps) if small else SOURCES[name].reps):
            parts = np.array_split(np.arange(len(everyone)), 2 if small else 8)
            tasks += [(name, rep, [everyone[i] for i in part], small) for part in parts]
    done = joblib.Parallel(n_jobs=jobs, return_as="generator")(joblib.delayed(run_batch)(*task) for task in tasks)
    found = [pair for batch in tqdm(done, total=len(tasks), unit="batch") for pair in batch]
    curves: dict[str, dict[str, list[float]]] = {}
    for name in names:
        for learner in () if SOURCES[name].check else (*CURVES, "planted"):
            chosen = [
                curve
                for row, curve in found
                if curve
                and (row["series"], row["learner"]) == (name, learner)
                and row["group"] in ("scale", "others")
                and (row["restart"], row["feedback"]) == ("center", "bound")
            ]
            if chosen:
                curves.setdefault(name, {})[learner] = np.mean(chosen, axis=0).round(7).tolist()
    return [row for row, _ in found], curves


def about(rows: list[Row], small: bool) -> dict[str, Any]:
    """What the numbers depend on."""
    packages = ("thalweg", "numpy", "scipy", "numba", "matplotlib", "joblib", "river", "bokeh_sampledata")
    versions = {"python": platform.python_version()}
    for package in packages:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "not installed"
    constants = {}
    for name in dict.fromkeys(row["series"] for row in rows):
        series = SOURCES[name].draw(name, 0, small)
        R, L, D = series.domain.surrogate.radius, series.smoothness, series.domain.diameter
        constants[name] = {
            "rounds": len(series.problem), "dim": series.domain.dim, "G": series.gradient_bound, "L": L,
            "B": series.loss_bound, "R": R, "D": D, "C_1 printed": printed_threshold(series)(1),
            "C_1 printed, R = D": printed_threshold(series, D)(1), "R^2 L": R**2 * L,
            "C SACS": thresholds.sacs(L=L, D=D, delta=1.0),
        }  # fmt: skip
    return {
        "small": small,
        "versions": versions,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "seeds": {f"{row['series']}/rep{row['rep']}": row["seed"] for row in rows},
        "constants": constants,
    }


# ------------------------------------------------------------------------------------------------------------- tables


def pick(rows: list[Row], **wanted: Any) -> list[Row]:
    """The rows with these entries, by repetition."""
    return sorted((r for r in rows if all(r[k] == v for k, v in wanted.items())), key=lambda r: r["rep"])


def spread(rows: list[Row], key: str = "total_loss") -> str:
    """Mean and standard deviation over repetitions."""
    values = [row[key] for row in rows]
    if not values or not np.isfinite(values).all():
        return "-"
    text = f"{np.mean(values):.4g}"
    return text if len(values) == 1 else f"{text} ± {np.std(values, ddof=1):.2g}"


def mean(rows: list[Row], key: str) -> str:
    """Mean over repetitions."""
    values = [row[key] for row in rows]
    return f"{np.mean(values):.4g}" if values and np.isfinite(values).all() else "-"


def tables(rows: list[Row]) -> str:
    """All tables, as Markdown that is also readable as it is."""
    parts = []
    knobs = ((1.0, "center"), (1e-3, "center"), (1e-3, "current"), (1e-4, "center"), (1e-4, "current"))
    variants = [(a, b) for b in ("bound", "observed") for a in ("center", "current")]
    for name in dict.fromkeys(row["series"] for row in rows):
        here = pick(rows, series=name)
        title = f"{name} ({SOURCES[name].title}; {here[0]['rounds']} rounds, {len({r['rep'] for r in here})} seed(s))"
        ends = {"worst_window": f"worst {WINDOW} rounds"}
        if np.isfinite(here[0]["later"]):
            ends = {"after_change": "after a change", "later": "later"} | ends
        body = []
        for s in sorted({r["scale"] for r in here if r["group"] == "scale"}, reverse=True):
            at = [pick(here, group="scale", scale=s, restart=a, feedback=b) for a, b in variants]
            extra = [mean(at[0], key) for key in ("markers", "experts_mean", "experts_peak")]
            soon = [spread(at[0], key) for key in ends]
            body.append([f"{s:.1e}", *[spread(v) for v in at], *extra, *soon])
        heads = ["scale", *[f"{b}, {a}" for a, b in variants], "markers", "experts", "peak",
                 *ends.values()]  # fmt: skip
        parts += [f"### {title}: total loss by threshold scale", _table(heads, body)]

        body = []
        for label in dict.fromkeys(r["learner"] for r in here if r["group"] == "others"):
            found = pick(here, group="others", learner=label)
            extra = [mean(found, key) for key in ("markers", "experts_mean", "projections")]
            body.append([label, spread(found), *extra, *[spread(found, key) for key in ends]])
        heads = ["learner", "total loss", "markers", "experts", "projections", *ends.values()]
        parts += [f"### {name}: beside it", _table(heads, body)]

        body = []
        for delta in sorted({r["delta"] for r in here if r["group"] == "delta"}):
            cells = [pick(here, group="delta", delta=delta, scale=s, restart=a) for s, a in knobs]
            body.append([f"{delta:g}", *[f"{spread(c)} ({mean(c, 'markers')})" for c in cells]])
        heads = ["delta", "printed", "1e-3, center", "1e-3, current", "1e-4, center", "1e-4, current"]
        parts += [f"### {name}: total loss (markers) by delta", _table(heads, body)]

        body = []
        for s in sorted({r["scale"] for r in here if r["group"] == "loose"}, reverse=True):
            cells = [pick(here, group=g, scale=s, restart="center", feedback=f)
                     for f in ("bound", "observed") for g in ("scale", "loose")]  # fmt: skip
            body.append([f"{s:.0e}", *[spread(c) for c in cells]])
        heads = ["scale", "bound, G", "bound, 100 G", "observed, G", "observed, 100 G"]
        parts += [f"### {name}: total loss with a gradient bound 100 times too large", _table(heads, body)]
    return "\n\n".join(parts) + "\n"


def _table(heads: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[k]) for row in (heads, *body)) for k in range(len(heads))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in (heads, *body)]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *lines[1:]])


# -------------------------------------------------------------------------------------------------------------- plots

# Okabe and Ito's colours, which all kinds of colour vision tell apart; line styles and markers say the same.
STYLES: dict[str, dict[str, Any]] = {
    "bound, center": {"color": "#0072B2", "marker": "o", "linestyle": "-"},
    "bound, current": {"color": "#56B4E9", "marker": "s", "linestyle": "--"},
    "observed, center": {"color": "#D55E00", "marker": "^", "linestyle": "-"},
    "observed, current": {"color": "#E69F00", "marker": "v", "linestyle": "--"},
}
LINES: dict[str, dict[str, Any]] = {
    "printed": {"color": "#000000", "linestyle": "-", "label": "EfficientAdaptive, printed threshold"},
    "scale 1e-03": {"color": "#0072B2", "linestyle": "-", "label": "EfficientAdaptive, $10^{-3}$ × printed"},
    "scale 1e-05": {"color": "#D55E00", "linestyle": "--", "label": "EfficientAdaptive, $10^{-5}$ × printed"},
    "SACS, default": {"color": "#CC79A7", "linestyle": "-.", "label": "SACS, its own threshold"},
    "EfficientDynamic": {"color": "#009E73", "linestyle": (0, (1, 1)), "label": "EfficientDynamic (Theorem 3)"},
    "planted": {"color": "#888888", "linestyle": ":", "label": "the planted model (noise only)"},
}


def plot_losses(rows: list[Row], path: pathlib.Path) -> None:
    """Total loss against the scale of the threshold, one panel a series."""
    plt = _pyplot()
    names = list(dict.fromkeys(row["series"] for row in rows))
    columns = min(4, len(names) + 1)
    height = -(-(len(names) + 1) // columns)
    figure, axes = plt.subplots(height, columns, figsize=(3.3 * columns, 3.2 * height), squeeze=False)
    for axis, name in zip(axes.flat, names, strict=False):
        here = pick(rows, series=name)
        rounds = here[0]["rounds"]
        scales = sorted({r["scale"] for r in here if r["group"] == "scale"})
        unit = _losses(here, group="scale", scale=1.0, restart="center", feedback="bound")
        for variant, style in STYLES.items():
            feedback, restart = variant.split(", ")
            found = [_losses(here, group="scale", scale=s, restart=restart, feedback=feedback) / unit for s in scales]
            axis.plot(scales, [v.mean() for v in found], **style, markersize=4, linewidth=1.4, label=variant)
        labels = {"EfficientDynamic": "EfficientDynamic (Theorem 3)", "SACS, default": "SACS, its own threshold"}
        for learner, colour, line in (("EfficientDynamic", "#009E73", (0, (1, 1))), ("SACS, default", "#CC79A7", "-.")):
            level = (_losses(here, group="others", learner=learner) / unit).mean()
            axis.axhline(level, color=colour, linestyle=line, linewidth=1.6, label=labels[learner])
        fired = [
            np.mean([r["markers"] for r in pick(here, group="scale", scale=s, restart="center", feedback="bound")])
            for s in scales
        ]
        alone = [s for s, count in zip(scales, fired, strict=True) if count == 1]
        if alone:
            axis.axvspan(alone[0] / 1.3, scales[-1] * 1.5, color="#eeeeee", zorder=0, label="no second expert")
        axis.axvline(1e-3, color="#555555", linewidth=1.0, linestyle=":", label="scale we suggest", zorder=0)
        axis.set(xscale="log", yscale="log", title=heading(name, rounds), xlim=(scales[0] / 1.6, scales[-1] * 1.5))
        axis.title.set_fontsize(10)
        ticks = [s for s in scales if abs(np.log10(s) - round(np.log10(s))) < 1e-9]
        counts = dict(zip(scales, fired, strict=True))
        written = [f"$10^{{{round(np.log10(s))}}}$\n{counts[s]:.0f}" for s in ticks]
        axis.set_xticks(ticks, written, fontsize=8)
        axis.minorticks_off()
        _plain_ticks(axis)
        axis.grid(alpha=0.3)
    for axis in axes[:, 0]:
        axis.set_ylabel("total loss relative to printed")
    for k in range(len(names), axes.size):
        axes.flat[k].axis("off")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    axes.flat[len(names)].legend(
        handles, labels, loc="center", frameon=False, fontsize=9, title="EfficientAdaptive: feedback range, restart"
    )
    figure.supxlabel("threshold scale (1 = as printed); below it: markers fired with bound, center", fontsize=10)
    figure.tight_layout()
    figure.savefig(path, dpi=85, pil_kwargs={"optimize": True})
    plt.close(figure)


def plot_after_change(rows: list[Row], curves: dict[str, dict[str, list[float]]], path: pathlib.Path) -> None:
    """Mean loss against rounds since the last change."""
    plt = _pyplot()
    figure, axes = plt.subplots(1, len(curves), figsize=(max(7.0, 5.0 * len(curves)), 5.0), squeeze=False, sharey=True)
    for axis, (name, found) in zip(axes.flat, curves.items(), strict=True):
        for learner, curve in found.items():
            edges = np.unique(np.geomspace(1, len(curve) + 1, 30).astype(int)) - 1  # windows that grow, for calm lines
            points = [(np.sqrt((a + 1) * b), np.mean(curve[a:b])) for a, b in itertools.pairwise(edges)]
            axis.plot(*np.transpose(points), **LINES[learner], linewidth=1.8)
        axis.set(xscale="log", yscale="log", title=heading(name, pick(rows, series=name)[0]["rounds"]))
        axis.set_xlabel("rounds since the last jump")
        axis.grid(alpha=0.3, which="both")
    axes[0, 0].set_ylabel("mean loss of a round (squared error / 2)")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=3 if len(curves) > 1 else 2, frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0.12 if len(curves) > 1 else 0.17, 1, 1))
    figure.savefig(path, dpi=85, pil_kwargs={"optimize": True})
    plt.close(figure)


def heading(name: str, rounds: int) -> str:
    """What a plot calls a series."""
    return f"{SOURCES[name].title}\nT = {rounds:,}"


def _losses(rows: list[Row], **wanted: Any) -> Array:
    return np.array([row["total_loss"] for row in pick(rows, **wanted)])


def _plain_ticks(axis: Any) -> None:
    """Plain numbers on the y axis: 1, 2, 5 in every decade, or even steps where it spans little."""
    low, high = axis.get_ylim()
    ticks = [b * 10.0**e for e in range(-4, 5) for b in (1, 2, 5)]
    if high < 3 * low:
        step = next(s for s in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5) if high - low < 7 * s)
        ticks = [step * k for k in range(round(1000 * high))]
    ticks = [tick for tick in ticks if low <= tick <= high]
    axis.set_yticks(ticks, [f"{tick:.4g}" for tick in ticks], fontsize=8)


def _pyplot() -> Any:
    """Matplotlib, drawing to files only."""
    need("matplotlib", "'thalweg[lab]'").use("Agg")
    return importlib.import_module("matplotlib.pyplot")


# ------------------------------------------------------------------------------------------------------- command line


def main(arguments: Sequence[str] | None = None) -> list[Row]:
    """Run the study, write its files, print its tables; returns the rows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--small", action="store_true", help="a version of seconds")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("results/threshold_study"), metavar="DIR")
    parser.add_argument("--jobs", type=int, default=2, help="runs side by side (default 2)")
    parser.add_argument("--series", nargs="+", choices=list(SOURCES), metavar="NAME", help=", ".join(SOURCES))
    options = parser.parse_args(arguments)
    skipped = [name for name, source in SOURCES.items() if options.small and (source.check or "long" in name)]
    names = options.series or [name for name in SOURCES if name not in skipped]
    began = time.perf_counter()
    rows, curves = study(names, options.small, options.jobs)
    text = tables(rows)
    options.out.mkdir(parents=True, exist_ok=True)
    with open(options.out / "results.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    (options.out / "about.json").write_text(json.dumps(about(rows, options.small) | {"curves": curves}) + "\n")
    (options.out / "tables.md").write_text(text)
    for check in (False, True):
        part = [row for row in rows if SOURCES[row["series"]].check == check]
        if part:
            plot_losses(part, options.out / ("losses_check.png" if check else "losses.png"))
    if curves:
        plot_after_change(rows, curves, options.out / "after_change.png")
    print(text)
    print(f"{len(rows)} runs in {time.perf_counter() - began:.0f} s. Written to {options.out}")
    return rows


if __name__ == "__main__":
    main()
