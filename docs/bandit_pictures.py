"""Regret of values alone against the horizon: the picture and the table of docs/feedback-proofs.md.

    python docs/bandit_pictures.py [--out DIR] [--longest 1000000]

Writes bandit.png to DIR (docs/img when left out) and prints the table. Ten minutes; seconds with --longest 10000.
Needs: pip install 'thalweg[lab]'
"""

import argparse
import math
import pathlib

import matplotlib.pyplot as plt
import numpy as np

import thalweg as tw

HERE = pathlib.Path(__file__).parent
LOOKS = {"one value": ("#D55E00", "o"), "two values": ("#0072B2", "s"), "full gradient": ("0.4", "^")}
FIRST = 1000


class Cone:
    """f(x) = ||x - p||: least at p, where it has a kink."""

    def __init__(self, p):
        self.p = p

    def value(self, x):
        """What x costs."""
        return math.hypot(x[0] - self.p[0], x[1] - self.p[1])

    def gradient(self, x):
        """The direction away from p."""
        far = self.value(x)
        return (x - self.p) / far if far else np.zeros(2)


def losses(T, drifting):
    """Still: p stays where it is. Drifting: p goes once round a circle, whatever T: the path has length 1.2 pi."""
    angles = 2 * np.pi * np.arange(T) / T if drifting else np.full(T, 0.3)
    return [Cone(p) for p in 0.6 * np.column_stack([np.cos(angles), np.sin(angles)])]


def learner(name, T, seed):
    """One of the three, on the unit disc."""
    disc = tw.domains.Ball(2)
    if name == "full gradient":
        return tw.EfficientDynamic(disc, T, gradient_bound=1.0)
    points = 1 if name == "one value" else 2
    return tw.EfficientBandit(disc, T, gradient_bound=1.0, loss_bound=1.6, points=points, rng=seed)


def regret(name, T, drifting, seeds):
    """Mean over seeds; the comparator p_t pays nothing."""
    stream = losses(T, drifting)
    return float(np.mean([tw.play(learner(name, T, seed), stream).total_loss for seed in range(seeds)]))


def main():
    """Measure, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "img")
    parser.add_argument("--longest", type=int, default=10**6)
    options = parser.parse_args()
    powers = round(math.log10(options.longest / FIRST))
    horizons = [FIRST * 10**i for i in range(powers + 1)]
    figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", sharey=True)
    print("| problem | learner | " + " | ".join(f"T = 10^{round(math.log10(T))}" for T in horizons) + " | slope |")
    print("|" + "---|" * (len(horizons) + 3))
    for ax, problem in zip(axes, ("still", "drifting"), strict=True):
        for name, (colour, marker) in LOOKS.items():
            found = [
                regret(name, T, problem == "drifting", 1 if name == "full gradient" else 2 ** (powers - i))
                for i, T in enumerate(horizons)
            ]
            slope = np.polyfit(np.log(horizons), np.log(found), 1)[0]
            ax.loglog(horizons, found, marker=marker, color=colour, label=f"{name}: slope {slope:.2f}")
            print(f"| {problem} | {name} | " + " | ".join(f"{r:.0f}" for r in found) + f" | {slope:.3f} |", flush=True)
        ax.set_title(f"p {'moves once round a circle' if problem == 'drifting' else 'stands still'}", fontsize=10)
        ax.set_xlabel("T")
        ax.legend(fontsize=9, frameon=False)
    axes[0].set_ylabel("regret against p")
    figure.savefig(options.out / "bandit.png", dpi=110)


if __name__ == "__main__":
    main()
