"""A process of its own: import thalweg, play one round, say how long each part took. Run by `bench.py`.

    python start.py SECONDS_AT_START update|play

Prints one line of JSON. Times count from SECONDS_AT_START, when the parent started this process;
`processor` is processor time.
"""

import sys
import time

READY = time.time()

import json  # noqa: E402


def kernel_stats() -> tuple[int, int]:
    """Cache hits and misses (compilations) of all kernels of thalweg in this process."""
    dispatchers = {
        id(value): value
        for name, module in list(sys.modules.items())
        if name.startswith("thalweg")
        for value in vars(module).values()
        if hasattr(value, "stats") and hasattr(value, "py_func")
    }
    stats = [dispatcher.stats for dispatcher in dispatchers.values()]
    return sum(sum(s.cache_hits.values()) for s in stats), sum(sum(s.cache_misses.values()) for s in stats)


def main() -> None:
    """Play one round and report."""
    began, mode = float(sys.argv[1]), sys.argv[2]
    import numpy as np

    import thalweg as tw

    imported = time.time()
    a, b = np.linspace(-1.0, 1.0, 8), 0.5
    domain = tw.domains.Ellipsoid(np.linspace(1.0, 10.0, 8), bound=9.0)
    learner = tw.EfficientDynamic(domain, horizon=20_000, gradient_bound=54.3, smoothness=9.0, loss_bound=164.0)
    if mode == "play":
        tw.play(learner, tw.problems.LinearRegression(a[None, :], [b]))
    else:
        x = learner.decision
        learner.update((a @ x - b) * a)
    x = learner.decision  # the round is complete when the next decision is known
    played, processor = time.time(), time.process_time()
    hits, misses = kernel_stats()
    report = {
        "interpreter": READY - began,
        "import": imported - READY,
        "first_round": played - imported,
        "total": played - began,
        "processor": processor,
        "hits": hits,
        "misses": misses,
        "feasible": domain.contains(x),
    }
    print(json.dumps(report))


main()
