"""Loss and time of StreamingPCA beside others: `python benchmarks/streaming_pca.py [ROWS]`.

Three tables in Markdown: real streams (those whose package is installed), synthetic ones, and the time of a row. A loss
is a share of the energy around the mean of all rows. `best half-life` is the best of the seven, each alone as an
exponentially weighted PCA, chosen in hindsight, with an exact eigendecomposition in every row. EfficientPCA is given
rows scaled to at most 1 by their largest, which it cannot know; all see one row after the other.
"""

import gzip
import importlib.util
import math
import pathlib
import sys
import time

import numpy as np
from sklearn.datasets import load_digits
from thalweg.lab.studies.pca.runs import STREAMS, Incremental
from threadpoolctl import threadpool_limits

import thalweg as tw
from thalweg.estimators import StreamingPCA

LIVES = StreamingPCA().halflives


def real():
    """Streams by name, with k."""
    images, digit = load_digits(return_X_y=True)
    yield "digits, by class", images[np.argsort(digit, kind="stable")], 6
    if (found := importlib.util.find_spec("skfolio")) is not None:
        file = pathlib.Path(found.submodule_search_locations[0], "datasets/data/sp500_dataset.csv.gz")
        with gzip.open(file, "rt") as lines:
            prices = np.array([line.split(",")[1:] for line in list(lines)[1:]], dtype=float)
        yield "SP500, daily returns (skfolio)", prices[1:] / prices[:-1] - 1, 3
    else:
        print("(SP500 is left out: pip install skfolio)\n")
    try:
        from river.datasets import ImageSegments, Shuttle

        rows = np.array([[*x.values()] for x, _ in Shuttle()], dtype=float)
        yield "shuttle (river)", rows, 2
        yield "shuttle, every column with spread 1", rows / rows.std(axis=0), 3
        yield "image segments (river)", np.array([[*x.values()] for x, _ in ImageSegments()], dtype=float), 3
    except ImportError:
        print("(shuttle and segments are left out: pip install river)\n")


def exact(rows, k, life):
    """The loss of one exponentially weighted PCA with exact eigenvectors."""
    f, d = 0.5 ** (1 / life), rows.shape[1]
    N, mu, S, lost = 0.0, np.zeros(d), np.zeros((d, d)), 0.0
    for t, x in enumerate(rows):
        z = x - mu
        if t:
            along = np.linalg.eigh(S)[1][:, -k:].T @ z
            lost += z @ z - along @ along
        S = f * S + f * N / (f * N + 1) * np.outer(z, z)
        N = f * N + 1
        mu = mu + z / N
    return lost


def leading(rows, k):
    """EfficientPCA with its leading directions."""
    learner, lost = tw.EfficientPCA(rows.shape[1], k, rng=0), 0.0
    scale = np.linalg.norm(rows, axis=1).max()
    for x in rows / scale:
        along = learner.leading @ x
        lost += x @ x - along @ along
        learner.update(x)
    return lost * scale**2


def line(name, rows, k):
    """A row of the table of losses."""
    T, energy = len(rows), np.sum((rows - rows.mean(axis=0)) ** 2)
    incremental = Incremental(k)
    cells = [sum([incremental.update(x) for x in rows][50:]) / energy, leading(rows, k) / energy]  # its first batch
    lives = [exact(rows, k, life) / energy for life in LIVES]
    ours = StreamingPCA(k).update(rows).sum() / energy
    best = min(lives)
    life = LIVES[lives.index(best)]
    said = f"{best:.4f} ({'no forgetting' if life == math.inf else f'{life:g}'})"
    print(f"| {name} | {T} | {k} of {rows.shape[1]} | {cells[0]:.3f} | {cells[1]:.3f} | {said} | "
          f"**{ours:.4f}** | {ours / best:.3f} |", flush=True)  # fmt: skip


def losses(streams, limit):
    """The table of losses."""
    heads = "stream", "rows", "k of d", "IncrementalPCA", "EfficientPCA", "best half-life", "StreamingPCA", "ratio"
    print(f"| {' | '.join(heads)} |")
    print("|---|---|---|---|---|---|---|---|")
    for name, rows, k in streams:
        line(name, np.asarray(rows, dtype=float)[:limit], k)
    print()


def times():
    """The table of times: rows of a batch, and of one call each."""
    rng = np.random.default_rng(0)
    print("| d, k | a row of a batch | a row alone | one eigendecomposition |\n|---|---|---|---|")
    for d, k in ((10, 2), (20, 3), (64, 6), (100, 10), (200, 10)):
        rows = rng.standard_normal((200, d))
        pca, C = StreamingPCA(k).partial_fit(rows), np.cov(rows.T)
        found = []
        for act, count in (
            (lambda: pca.partial_fit(rows), 200),  # noqa: B023
            (lambda: [pca.partial_fit(x[None]) for x in rows], 200),  # noqa: B023
            (lambda: [np.linalg.eigh(C) for _ in range(50)], 50),  # noqa: B023
        ):
            best = math.inf
            for _ in range(5):
                began = time.process_time()
                act()
                best = min(best, time.process_time() - began)
            found.append(f"{1e6 * best / count:.0f} µs")
        print(f"| {d}, {k} | " + " | ".join(found) + " |", flush=True)


if __name__ == "__main__":
    limit = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    with threadpool_limits(1):
        losses(real(), limit)
        losses(
            ((name, s.draw(1, 4000), s.rank) for name, s in STREAMS.items() if not s.real and "rare" not in name), limit
        )
        times()
