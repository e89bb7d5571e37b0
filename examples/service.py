"""A service that decides, learns and survives: load, serve, checkpoint every minute and at SIGTERM, resume.

    python service.py FOLDER --rounds 1000 --every 60

Every round it prints its number and the decision, exactly. Killed at any time and started again, it prints the
decisions of a run that was never interrupted: rounds after the last checkpoint are played again, from the same events.
docs/run-in-a-service.md explains it.
"""

import argparse
import pathlib
import signal
import time

import numpy as np

import thalweg as tw


def event(t):
    """Return the event of round t. A real service reads it from a queue that keeps events until they are saved."""
    rng = np.random.default_rng([7, t])
    features = rng.uniform(-1, 1, size=3)
    return tw.losses.Squared(features, float(features @ [1.0, -0.5, np.sin(t / 50)]))


def resume(path):
    """The learner of the last checkpoint, or a new one. Drafts of a process that was killed are removed."""
    for draft in path.parent.glob(".thalweg-*.tmp"):
        draft.unlink()
    return tw.load(path) if path.exists() else tw.Tracker(tw.domains.Ball(3, radius=2.0))


def main():
    """Serve."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--every", type=float, default=60.0, help="seconds between checkpoints")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    path = options.folder / "learner.npz"
    stopping = []
    signal.signal(signal.SIGTERM, lambda *_: stopping.append(True))  # the round is finished first

    learner = resume(path)
    saved = time.monotonic()
    while learner.rounds < options.rounds and not stopping:
        t = learner.rounds
        print(t, " ".join(map(float.hex, learner.decision.tolist())), flush=True)
        learner.step(event(t))
        if time.monotonic() - saved >= options.every:
            learner.save(path)
            saved = time.monotonic()
    learner.save(path)


if __name__ == "__main__":
    main()
