"""What each caller may take of a server's shared resources, so that no caller can keep others out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager


def overfull(holders: Iterable[str], *, each: int, most: int) -> str | None:
    """Return the caller who must give up one of what it holds, or None. It is always the caller who holds most.

    Args:
        holders: The caller of each thing that is held.
        each: The maximum for one caller.
        most: The maximum for all callers together.
    """
    counts = Counter(holders)
    if not counts:
        return None
    name, held = counts.most_common(1)[0]
    return name if held > each or counts.total() > most else None


class InProgress:
    """The requests in progress and the open streams of each caller."""

    def __init__(self, *, requests: int, streams: int) -> None:
        """Args:
        requests, streams: The maximum for one caller.
        """
        self._most_requests, self._most_streams = requests, streams
        self._requests: Counter[str] = Counter()
        self._streams: Counter[str] = Counter()
        self.total = 0
        """The requests in progress of all callers, without streams."""

    def problem(self, name: str) -> str | None:
        """Return why a caller can start no other request, or None."""
        if self._requests[name] >= self._most_requests:
            return f"this caller already has {self._most_requests} requests in progress"
        if self._streams[name] >= self._most_streams:
            return f"this caller already has {self._most_streams} open streams"
        return None

    @contextmanager
    def request(self, name: str) -> Iterator[Callable[[], None]]:
        """Count a request until the end of the block. Yield a function to call when its answer is a stream."""
        counts = self._requests
        _change(counts, name, 1)
        self.total += 1

        def becomes_stream() -> None:
            nonlocal counts
            if counts is self._requests:
                _change(counts, name, -1)
                self.total -= 1
                counts = self._streams
                _change(counts, name, 1)

        try:
            yield becomes_stream
        finally:
            _change(counts, name, -1)
            self.total -= counts is self._requests


def _change(counts: Counter[str], name: str, by: int) -> None:
    counts[name] += by
    if not counts[name]:
        del counts[name]
