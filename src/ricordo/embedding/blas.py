"""Keeps numpy's matrix products on one thread while an embedder computes.

Measured with OpenBLAS on two cores: two threads were slower than one, and took the second core from everybody
else.
"""

from __future__ import annotations

import threading
from types import TracebackType

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]


class BlasLimit:
    """Limits the threads of BLAS for as long as anyone is inside; the last to leave restores what was before.

    The limit holds for the whole process, so there is one of these for all embedders (`LIMIT`). Were each
    embedder to set and restore by itself, two that overlap would restore one another's limit and leave it in
    place for ever.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._controller = ThreadpoolController()
        self._lock = threading.Lock()
        self._inside = 0

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limiter = self._controller.limit(limits=self._threads, user_api="blas")
            self._inside += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limiter.restore_original_limits()


LIMIT = BlasLimit(threads=1)
