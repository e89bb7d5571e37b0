"""The picture and the tables of hints on docs/feedback-proofs.md.

    python docs/hint_pictures.py [--out DIR] [--rounds 1000000]

Writes hints.png to DIR (docs/img when left out) and prints the tables; a million rounds take some minutes.
Needs: pip install 'thalweg[lab]'
"""

import argparse
import pathlib

import matplotlib.pyplot as plt
import numpy as np

import thalweg as tw

HERE = pathlib.Path(__file__).parent
SETS = {
    "ball": tw.domains.Ball(3),
    "box": tw.domains.Box([-1.0, -0.2, -0.5], [1.0, 0.2, 0.5]),
    "simplex": tw.domains.Simplex(4),
    "ellipsoid": tw.domains.Ellipsoid([1.0, 4.0, 16.0], bound=1.0),
}
LOOKS = {
    "EfficientOptimistic, perfect hints": ("#0072B2", "o-"),
    "EfficientOptimistic, the last gradient": ("#56B4E9", "s-"),
    "EfficientOptimistic, opposite hints": ("#CC79A7", "v-"),
    "EfficientDynamic": ("#009E73", "^--"),
    "SwordPP, 2N projections": ("#D55E00", "D--"),
}


def turning(X, T):
    """Slopes that turn once in T rounds, and the best decision of every round."""
    a, b, c = np.linalg.qr(np.random.default_rng(0).normal(size=(X.dim, X.dim)))[0][:3]
    w = np.linspace(0, 2 * np.pi, T)[:, None]
    slopes = np.cos(w) * a + np.sin(w) * b + 0.5 * np.sin(3 * w) * c
    slopes /= np.linalg.norm(slopes, axis=1).max()
    return slopes, np.array([X.project(X.center - 1e4 * X.radius * g / np.linalg.norm(g)) for g in slopes])


def hinted(X, slopes, u, hints):
    """Regret of a learner that is given these hints."""
    learner, regret = tw.EfficientOptimistic(X, len(slopes), 1.0), 0.0
    for g, m, best in zip(slopes, hints, u, strict=True):
        learner.hint(m)
        regret += g @ (learner.decision - best)
        learner.update(g)
    return regret


def unhinted(learner, slopes, u):
    """Regret of a learner by itself."""
    run = tw.play(learner, tw.problems.LinearLosses(slopes), decisions=True)
    return float((slopes * (run.decisions - u)).sum())


def by_rounds(X, horizons, names):
    """Regret after T rounds, for every T."""
    rows = {name: [] for name in names}
    for T in horizons:
        slopes, u = turning(X, T)
        for name in names:
            learner = tw.EfficientDynamic if name == "EfficientDynamic" else tw.EfficientOptimistic
            if "hints" in name:
                lost = hinted(X, slopes, u, slopes if "perfect" in name else -slopes)
            else:
                lost = unhinted(learner(X, T, 1.0), slopes, u)
            rows[name].append(lost)
    return rows


def by_variation(X, sigmas, T=20_000, repeats=5):
    """Regret where noise is added to slopes that turn, the mean of some runs."""
    drift, u = turning(X, T)
    names = ["EfficientOptimistic, the last gradient", "SwordPP, 2N projections", "EfficientDynamic"]
    rows, roots = {name: [] for name in names}, []
    for sigma in sigmas:
        lost = np.zeros(3)
        for seed in range(repeats):
            noise = np.random.default_rng(seed).normal(size=drift.shape)
            slopes = 0.5 * drift + sigma * noise / np.linalg.norm(noise, axis=1, keepdims=True)
            learners = (
                tw.EfficientOptimistic(X, T, 1.0),
                tw.SwordPP(X, T, 1.0, 1 / (8 * X.radius)),
                tw.EfficientDynamic(X, T, 1.0),
            )
            lost += [unhinted(learner, slopes, u) / repeats for learner in learners]
        roots.append(float(np.sqrt((np.diff(slopes, axis=0) ** 2).sum())))
        for name, regret in zip(names, lost, strict=True):
            rows[name].append(regret)
    return roots, rows


def table(head, columns, rows):
    """Print a table of numbers."""
    print(f"\n| {head} | " + " | ".join(columns) + " |\n|" + "---|" * (len(columns) + 1))
    for name, numbers in rows:
        print(f"| {name} | " + " | ".join(f"{x:.3g}" for x in numbers) + " |")


def main():
    """Measure, print and draw."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "img")
    parser.add_argument("--rounds", type=int, default=1_000_000)
    options = parser.parse_args()
    horizons = [T for T in (100, 1000, 10_000, 100_000, 1_000_000) if options.rounds >= T]
    perfect, *others = list(LOOKS)[:4]
    found = {name: by_rounds(X, horizons, [perfect])[perfect] for name, X in SETS.items()}
    box = {perfect: found["box"]} | by_rounds(SETS["box"], horizons, others)
    table("perfect hints, T =", [str(T) for T in horizons], found.items())
    table("box, T =", [str(T) for T in horizons], box.items())
    sigmas = (0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5)
    roots, noisy = by_variation(SETS["box"], sigmas)
    table("box, sqrt(V) =", [f"{root:.3g}" for root in roots], noisy.items())
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    for ax, x, rows in ((left, horizons, box), (right, roots, noisy)):
        for name, regret in rows.items():
            colour, mark = LOOKS[name]
            ax.loglog(x, regret, mark, color=colour, markersize=4, linewidth=1.2, label=name)
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", alpha=0.3)
        ax.legend(frameon=False, fontsize=8)
    left.set(xlabel="rounds T", ylabel="regret", title="slopes that turn once in T rounds")
    right.set(xlabel=r"$\sqrt{V_T}$, by noise on the slopes", title="T = 20 000")
    figure.savefig(options.out / "hints.png", dpi=120)


if __name__ == "__main__":
    main()
