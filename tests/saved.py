"""Everything that can be saved, how to play it, and a process that only loads: `python -m tests.saved FOLDER`."""

import copy
import inspect
import pathlib
import sys
import warnings

import numpy as np

import thalweg as tw
from tests.worlds import LEARNERS
from thalweg import control, pca
from thalweg.cards import recipes
from thalweg.testing._learner import _stream

ROUNDS = 24
SYSTEM = control.LinearSystem([[0.9, 0.3], [0.0, 0.8]], [[0.0], [1.0]])
COST = control.Quadratic([1.0, 1.0], [1.0])


def clip(y):
    return np.clip(y, -1.0, 2.0)


def _found(module, base):
    """The classes of a module that can be built."""
    kinds = [getattr(module, name) for name in module.__all__]
    return [k for k in kinds if isinstance(k, type) and issubclass(k, base) and not inspect.isabstract(k)]


def _build(kind):
    """One of a PCA learner or controller, from arguments by name."""
    known = {"dim": 4, "rank": 1, "rng": 3, "system": SYSTEM, "horizon": 60, "memory": 2}
    known["policies"] = 0.1 * np.arange(4.0).reshape(2, 1, 2)
    taken = inspect.signature(kind).parameters
    more = {"step_size": 0.2} if "step_size" in taken and taken["step_size"].default is inspect.Parameter.empty else {}
    options = any(p.kind is p.VAR_KEYWORD for p in taken.values())
    return kind(
        **{name: value for name, value in known.items() if name in taken or (options and name == "memory")}, **more
    )


KINDS = [*_found(pca, pca.PCALearner), *_found(control, control.Controller)]
CARDS = [*recipes(), *(kind.__name__ for kind in KINDS)]
MAKERS = LEARNERS | {kind.__name__: (lambda kind=kind: _build(kind)) for kind in KINDS}


def again(name):
    """What has to be given again when it is loaded."""
    return {"domain.project": clip} if "custom" in name or name == "EfficientAdaptive observed" else {}


def make(name):
    """One of that name; a set that is given by a function has one that the loading process has, too."""
    learner = MAKERS[name]()
    if not again(name):
        return learner
    box = tw.domains.Custom(clip, 3, center=np.full(3, 0.5), radius=1.5 * np.sqrt(3))
    return type(learner)(**learner._given | {"domain": box})


def play(name, learner, first=0, last=ROUNDS):
    """Rounds first..last-1 of the one stream that belongs to a name; all that was decided, as one array."""
    decided = []
    rng = np.random.default_rng(1)
    if isinstance(learner, control.Controller):
        states, pushes = rng.normal(size=(2, ROUNDS, 2))
        for t in range(first, last):
            decided.append(learner.act(states[t]))
            learner.observe(COST, SYSTEM.step(states[t], decided[-1], 0.1 * pushes[t]))
        return np.array([*decided, learner.act(states[0])])
    if isinstance(learner, pca.PCALearner):
        rows = rng.normal(size=(ROUNDS, learner.dim))
        for t in range(first, last):
            decided.append(np.append(learner.components.ravel(), learner.update(rows[t] / np.linalg.norm(rows[t]))))
        return np.array([*decided, np.append(learner.components.ravel(), 0.0)])
    for f in _stream(lambda: learner, ROUNDS)[first:last]:
        decided.append(np.array(learner.decision).ravel())
        learner.step(f)
    return np.array([*decided, np.array(learner.decision).ravel()])


def continue_all(folder):
    """Load every file NUMBER.npz of a folder; what it and copies of it go on to do, by number."""
    names = (folder / "names.txt").read_text().splitlines()
    found = {}
    for number, line in enumerate(names):
        name, split = line.rsplit(" ", 1)
        path = folder / f"{number}.npz"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tw.errors.HorizonWarning)
            loaded = tw.load(path, **again(name))
            kept = loaded.state()
            ways = {"loaded": loaded, "copied": copy.copy(tw.load(path, **again(name))), "deep": copy.deepcopy(loaded)}
            if getattr(loaded, "horizon", None) is not None and number % 2 == 0:
                ways["horizon"] = tw.load(path, horizon=loaded.horizon, **again(name))
            for way, learner in ways.items():
                found[f"{number} {way}"] = play(name, learner, int(split))
            loaded.restore(kept)
            found[f"{number} restored"] = play(name, loaded, int(split))
    return found


if __name__ == "__main__":
    np.savez(pathlib.Path(sys.argv[1]) / "continued.npz", **continue_all(pathlib.Path(sys.argv[1])))
