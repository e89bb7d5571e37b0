"""What several files of this folder share."""

import contextlib

import pytest

from tests.samples import same
from thalweg.errors import InputError


@contextlib.contextmanager
def refused(made, match=None, kind=InputError):
    """The call inside is refused with these words, and nothing has changed."""
    before = made.state()
    with pytest.raises(kind, match=match):
        yield
    assert same(made.state(), before)


def in_turn(ask, answer, rounds, late=0):
    """Ask in every round t, and answer each `late` rounds after it; everything that was said."""
    said = []
    for t in range(rounds + late):
        if t < rounds:
            said.append(ask(t))
        if t >= late:
            answer(t - late)
    return said
