"""Ctrl-C as a request that long loops check between two rounds, and Ctrl-C deferred."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Stop:
    """Whether Ctrl-C was pressed."""

    asked = False


@contextmanager
def handled(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Replace Python's handler of Ctrl-C. Any other handler stays, and none is set outside the main thread."""
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or usual is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


@contextmanager
def interrupts() -> Iterator[Stop]:
    """Turn the first Ctrl-C into a request to stop, so that no round is left half played."""
    stop = Stop()

    def ask(number: int, frame: FrameType | None) -> None:
        stop.asked = True
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a second Ctrl-C interrupts as usual

    with handled(ask):
        yield stop


@contextmanager
def deferred() -> Iterator[None]:
    """Defer Ctrl-C until the body is done, whatever its handler.

    Blocking the signal would not be enough: that applies to one thread, and Dask has others that receive it.
    """
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(usual):
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
    if came:
        usual(*came[0])
