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
