"""Prefetching of memory."""

LINE = 64  # bytes that come together


def fetch(address: int) -> None:
    """Ask for the cache line at an address, inside kernels; any address will do. Elsewhere it does nothing."""
