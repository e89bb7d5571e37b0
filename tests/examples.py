"""Example files of this version, one of each class that can be saved: `python -m tests.examples [CLASS ...]`.

They are written to `tests/data/VERSION`. Every later version reads those of all versions: `tests/test_files.py`.
"""

import functools
import pathlib
import sys

import thalweg as tw
from tests import samples

DATA = pathlib.Path(__file__).parent / "data"
ROUNDS = 24


@functools.cache
def names():
    """The first sample of each class whose file needs no argument again, by the name of the class."""
    found = {}
    for name in samples.SAMPLES:
        if not samples.SAMPLES[name].again:
            found.setdefault(type(samples.make(name)).__name__, name)
    return found


def write(kinds, folder=DATA / tw.__version__):
    folder.mkdir(exist_ok=True)
    for kind in kinds:
        samples.played(names()[kind], ROUNDS).save(folder / f"{kind}.npz")


if __name__ == "__main__":
    write(sys.argv[1:] or names())
