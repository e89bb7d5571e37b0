"""Pictures of regret on the paper's stream: what the functions of `thalweg.regret.plots` draw.

    python docs/regret_pictures.py [--small] [--out DIR]

Regression on an ellipsoid whose model jumps 25 times in 20 000 rounds. Writes regret-*.png to DIR (docs/img when left
out) in less than a minute; `--small` takes seconds. Needs: pip install 'thalweg[lab]'
"""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

import thalweg as tw
from thalweg.algorithms import thresholds
from thalweg.regret import plots


class Stream:
    """The paper's regression with jumps, and learners for it."""

    def __init__(self, T: int, stages: int, seed: int) -> None:
        self.T, self.domain = T, tw.problems.paper_ellipsoid()
        self.problem = tw.problems.piecewise_stationary(self.domain, T, stages, rng=seed)
        self.G, self.L = self.problem.gradient_bound(self.domain), self.problem.smoothness

    def adaptive(self, scale: float = 1.0, feedback_range: str = "bound") -> tw.EfficientAdaptive:
        """Algorithm 2 with its printed threshold times a scale (docs/thresholds.md)."""
        constants = {"T": self.T, "G": self.G, "L": self.L, "R": self.domain.surrogate.radius, "delta": 1.0}
        return tw.EfficientAdaptive(
            self.domain,
            self.T,
            self.G,
            self.L,
            threshold=lambda m: scale * thresholds.adaptive_paper(m, **constants),
            feedback_range=feedback_range,
        )

    def dynamic(self) -> tw.EfficientDynamic:
        """Algorithm 1 for small losses."""
        return tw.EfficientDynamic(self.domain, self.T, self.G, self.L)


def cumulative_loss(streams: Sequence[Stream]) -> Any:
    """Four learners and the planted model, over the seeds."""
    makers = {
        "EfficientAdaptive, as printed": Stream.adaptive,
        "EfficientAdaptive, threshold / 1000": lambda stream: stream.adaptive(1e-3),
        "EfficientDynamic": Stream.dynamic,
        "SACS": lambda stream: tw.SACS(
            stream.domain, loss_bound=stream.problem.loss_bound(stream.domain), smoothness=stream.L, gradients="own"
        ),
    }
    runs = {name: [tw.play(make(stream), stream.problem) for stream in streams] for name, make in makers.items()}
    planted = [stream.problem.losses_of(stream.problem.comparators) for stream in streams]
    return plots.cumulative_loss(runs, comparators={"planted model": planted})


def regret_over_time(stream: Stream) -> Any:
    """Algorithm 3 against the planted model, with the bound of its theorem on the first t rounds."""
    learner = tw.EfficientIntervalDynamic(stream.domain, stream.T, stream.G, stream.L)
    run = tw.play(learner, stream.problem)
    stops = np.unique(np.geomspace(1, stream.T, 100).astype(int))
    certificate = tw.regret.certify(learner, stream.problem, run, intervals=[(0, int(t)) for t in stops])
    bounds = [row.bound for row in certificate.rows if row.against == "planted"]
    allowed = np.interp(np.arange(1, stream.T + 1), stops, bounds)
    ax = plots.regret_over_time(run, stream.problem, bound=allowed)
    ax.set_title("EfficientIntervalDynamic against the planted model", fontsize="medium")
    return ax


def regret_by_length(stream: Stream) -> Any:
    """Adaptive regret of two methods, and what Theorem 4 allows the first of them."""
    X, problem = stream.domain, stream.problem
    learner = stream.adaptive(1e-3)
    run = tw.play(learner, problem)
    measured = {
        "EfficientAdaptive, threshold / 1000": tw.regret.adaptive(run, problem, X),
        "EfficientDynamic": tw.regret.adaptive(tw.play(stream.dynamic(), problem), problem, X),
    }
    certificate = tw.regret.certify(learner, problem, run)
    ax = plots.regret_by_length(*measured.values(), bound=certificate, labels=list(measured))
    ax.set_title("Regret by interval length; bound: Theorem 4 for EfficientAdaptive", fontsize="medium")
    return ax


def draw(T: int, stages: int, seeds: int) -> dict[str, Any]:
    """The pictures by name."""
    streams = [Stream(T, stages, seed) for seed in range(1, seeds + 1)]
    first = streams[0]
    covers = {
        "cover": (first.adaptive(3e-4, "observed"), T),
        "cover-many": (first.adaptive(5e-6, "observed"), T),
        "cover-rounds": (tw.EfficientCBCE(first.domain, gradient_bound=first.G), 64),
        "cover-all-rounds": (tw.EfficientCBCE(first.domain, gradient_bound=first.G), T),
    }
    pictures = {
        "cumulative-loss": cumulative_loss(streams),
        "over-time": regret_over_time(first),
        "by-length": regret_by_length(first),
    }
    for name, (learner, rounds) in covers.items():
        pictures[name] = plots.cover(plots.record_cover(learner, first.problem[:rounds]))
    return pictures


def main(arguments: Sequence[str] | None = None) -> list[pathlib.Path]:
    """Draw and save; returns the files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--small", action="store_true", help="a version of seconds")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("docs/img"), metavar="DIR")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    pictures = draw(500, 5, 2) if options.small else draw(20_000, 25, 5)
    files = []
    for name, ax in pictures.items():
        files.append(options.out / f"regret-{name}.png")
        ax.figure.savefig(files[-1], dpi=85, pil_kwargs={"optimize": True})
        print(files[-1])
    return files


if __name__ == "__main__":
    main()
