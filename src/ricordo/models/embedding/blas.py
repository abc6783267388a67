"""Keeps numpy's matrix products on one thread while an embedder computes.

Measured with OpenBLAS on two cores: two threads were slower than one, and took the second core from everybody
else.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

import numpy  # noqa: F401 - the controller finds only libraries that are loaded
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]


def one_thread() -> AbstractContextManager[object]:
    """Limits BLAS to one thread inside the `with`.

    The limit is the process's. threadpoolctl 3.8 lets one thread at a time set it, so two embedders that
    overlap cannot leave it in place for ever, as they would if each restored what it found; at worst the rest
    of one pass runs on all threads.
    """
    limit: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return limit


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
