"""Ctrl-C as a question that long loops look at between two rounds."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Stop", "interrupts"]


class Stop:
    """Whether Ctrl-C was pressed."""

    asked = False


@contextmanager
def interrupts() -> Iterator[Stop]:
    """Turn the first Ctrl-C into a request to stop, so that no round is left half played."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    usual = signal.getsignal(signal.SIGINT)

    def ask(number: int, frame: FrameType | None) -> None:
        stop.asked = True
        signal.signal(signal.SIGINT, usual)  # a second Ctrl-C interrupts as usual

    if usual is signal.default_int_handler:
        signal.signal(signal.SIGINT, ask)
    try:
        yield stop
    finally:
        if usual is signal.default_int_handler:
            signal.signal(signal.SIGINT, usual)
