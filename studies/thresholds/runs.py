"""One run of the study of thresholds: a series, a learner, and its loss.

`EfficientAdaptive` starts a new expert when the loss since the last marker exceeds C_m. It is played with the printed
C_m times a scale, with both restart points and both feedback ranges, beside other learners. The seed of a series is a
hash of its name and repetition, so adding a learner changes no data.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import thalweg as tw
from thalweg.algorithms import thresholds
from thalweg.lab import streams
from thalweg.lab.jobs import seed_of
from thalweg.lab.report import Row
from thalweg.lab.runs import (
    WINDOW,
    counted,
    forecast_losses,
    printed_threshold,
    scaled_adaptive,
    scaled_sacs,
    steps,
    window,
    worst,
)
from thalweg.lab.streams import Stream

# Learners whose loss after a jump is drawn.
CURVES = ("printed", "scale 1e-03", "scale 1e-05", "SACS, default", "EfficientDynamic", "planted")
OTHERS = ("proof", "printed, R = D", "5 x first 200", "one SOGD in Y", "SACS, default", "SACS, compact", "CBCE",
          "EfficientCBCE", "EfficientDynamic", "SOGD", "OGD", "best fixed", "planted", "persistence")  # fmt: skip


# ---------------------------------------------------------------------------------------------------------- the series


@dataclass(frozen=True)
class Series:
    """Name of a series in pictures, number of draws, and whether its data is real.

    Those of the check had no part in the choice of a scale.
    """

    title: str
    reps: int = 1
    real: bool = False
    check: bool = False


SERIES = {
    "piecewise": Series("jumps", 5),
    "piecewise_long": Series("jumps, long run", 3),
    "gradual": Series("slow walk: steps of D/T", 5),
    "gradual_fast": Series("fast walk: steps of D/sqrt(T)", 5),
    "polls": Series("real: weighing 5 pollsters", real=True),
    "glucose": Series("real: calibrating a sensor", real=True),
    "sea": Series("real: sea temperature, autoregression", real=True),
    "ball_piecewise": Series("ball, jumps", 5, check=True),
    "ball_piecewise_noisy": Series("ball, jumps, noise 0.5", 5, check=True),
    "ball_fast": Series("ball, fast walk", 5, check=True),
    "ball_fast_noisy": Series("ball, fast walk, noise 0.5", 5, check=True),
    "piecewise_noisy": Series("ellipsoid, jumps, noise 2", 5, check=True),
    "gradual_noisy": Series("ellipsoid, slow walk, noise 2", 5, check=True),
    "water": Series("real: flow of water, autoregression", real=True, check=True),
}


@functools.lru_cache(maxsize=4)  # a worker plays many learners on the same data
def draw(name: str, rep: int, horizon: int | None) -> Stream:
    """A series: a real one, or a regression with a planted model, on the paper's ellipsoid or on a ball."""
    if SERIES[name].real:
        return streams.draw(name, horizon=horizon)
    on_ball, noisy = name.startswith("ball"), name.endswith("noisy")
    domain = tw.domains.Ball(20) if on_ball else tw.problems.paper_ellipsoid()
    noise = (0.5 if on_ball else 2.0) if noisy else 0.1
    T = horizon or (200_000 if name == "piecewise_long" else 20_000)
    make = functools.partial(streams.planted, name, domain, T, seed_of(f"{name}/rep{rep}", bits=64), noise=noise)
    if "piecewise" in name:
        return make(stages=T // (400 if horizon else 500 if on_ball else 800))
    return make(step=domain.diameter / (np.sqrt(T) if "fast" in name else T))


# -------------------------------------------------------------------------------------------------------- the learners


@dataclass(frozen=True)
class Contender:
    """A learner to play, by name; the other fields are for `EfficientAdaptive`."""

    learner: str
    group: str = "others"
    scale: float = 1.0
    restart: str = "center"
    feedback: str = "bound"
    delta: float = 1.0
    looseness: float = 1.0  # how many times too large a gradient bound the learner is given; same thresholds


def scale_name(scale: float) -> str:
    """Name of EfficientAdaptive with a multiple of the printed threshold."""
    return "printed" if scale == 1 else f"scale {scale:.0e}"


def build(contender: Contender, series: Stream) -> tw.Learner:
    """A fresh learner for the series."""
    X, G, L, B = series.domain, series.gradient_bound, series.smoothness or 0.0, series.loss_bound
    T = len(series.problem)
    sacs = functools.partial(tw.SACS, X, loss_bound=B, smoothness=L, gradients="own", horizon=T)
    adaptive = functools.partial(tw.EfficientAdaptive, X, T, G, L)
    name = contender.learner
    if contender.group in ("scale", "delta", "loose"):
        choices = {"restart": contender.restart, "feedback_range": contender.feedback, "delta": contender.delta}
        return scaled_adaptive(series, contender.scale, contender.looseness, **choices)
    if name.startswith("SACS, scale"):
        return scaled_sacs(series, contender.scale)
    if name == "5 x first 200":
        # One expert is alone in these rounds, as C is larger than its loss in them. So this can be done online.
        first = tw.play(adaptive(), series.problem, rounds=200).total_loss
        return adaptive(threshold=lambda m: 5 * first * np.log(1 + 2 * m) / np.log(3))
    makers: dict[str, Callable[[], tw.Learner]] = {
        "proof": lambda: adaptive(threshold="proof"),
        "printed, R = D": lambda: adaptive(surrogate=tw.domains.Ball(X.shape, radius=X.diameter)),
        "one SOGD in Y": lambda: tw.OneProjection(X, lambda Y: tw.SOGD(Y, scale=Y.radius)),
        "SACS, default": sacs,
        "SACS, compact": lambda: sacs(cover="compact"),
        "CBCE": lambda: tw.CBCE(X, gradient_bound=G, gradients="own", horizon=T),
        "EfficientCBCE": lambda: tw.EfficientCBCE(X, gradient_bound=G, horizon=T),
        "EfficientDynamic": lambda: tw.EfficientDynamic(X, T, G, L, loss_bound=B),
        "SOGD": lambda: tw.SOGD(X),
        "OGD": lambda: tw.OGD(X, horizon=T, gradient_bound=G),
    }
    return makers[name]()


# ------------------------------------------------------------------------------------------------------------- one run


def play_one(*, series: str, rep: int, horizon: int | None, **contender: Any) -> Row:
    """Play one contender, given by its fields; where the model jumps, `curve` is the loss by rounds since a jump."""
    who, stream = Contender(**contender), draw(series, rep, horizon)
    row: Row = {"series": series, "rep": rep, "seed": seed_of(f"{series}/rep{rep}", bits=64), **contender}
    row |= dict.fromkeys(("markers", "experts", "most_experts", "projections", "gradients", "values", "seconds"))
    if who.learner == "planted":
        assert stream.problem.comparators is not None
        losses = stream.problem.losses_of(stream.problem.comparators)
    elif who.learner == "best fixed":
        losses = stream.problem.losses_of(tw.regret.best_fixed(stream.problem, stream.domain).decisions)
    elif who.learner == "persistence":
        losses = forecast_losses(stream.problem)["persistence"]
    else:
        learner = build(who, stream)
        played = tw.play(learner, stream.problem)
        if played.interrupted:
            raise KeyboardInterrupt
        losses, row = played.losses, row | counted(learner, played) | {"seconds": played.seconds}
        if row["experts"] is None:  # a fixed pool
            found = steps(learner)
            row["most_experts"] = 1 if found is None else int(found.size)
            row["experts"] = float(row["most_experts"])
    row |= {"rounds": losses.size, "total_loss": float(losses.sum())}
    row |= {"worst_window": worst(losses) / window(losses.size), "after_change": None, "later": None, "curve": []}
    if stream.changes:
        by_stage = losses.reshape(len(stream.changes) + 1, -1)[1:]  # every stage but the first starts with a change
        soon = min(WINDOW, by_stage.shape[1] // 2)
        row |= {"after_change": float(by_stage[:, :soon].mean()), "later": float(by_stage[:, soon:].mean())}
        row["curve"] = by_stage.mean(axis=0).tolist() if who.learner in CURVES else []
    return row


def constants(*, series: str, horizon: int | None) -> Row:
    """The constants of the thresholds of a series."""
    stream = draw(series, 0, horizon)
    R, L, D = stream.domain.surrogate.radius, stream.smoothness or 0.0, stream.domain.diameter
    return {
        "series": series, "T": len(stream.problem), "d": stream.domain.dim, "G": stream.gradient_bound, "L": L,
        "B": stream.loss_bound, "R": R, "D": D, "R² L": R**2 * L, "C_1": printed_threshold(stream)(1),
        "C_1, R = D": printed_threshold(stream, D)(1), "C of SACS": thresholds.sacs(L=L, D=D, delta=1.0),
    }  # fmt: skip
