"""Spans of OpenTelemetry. Its API is used only if the program has imported it, and is never imported here: a program
that records no spans pays for none. No span holds the text of a memory, a question, an owner or an error.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any, TypeVar

from ricordo.errors import RicordoError

T = TypeVar("T")
Attribute = str | int | float | bool
Attributes = Callable[[Any], Mapping[str, Attribute]]
"""Returns what a span says of an answer."""

_API = "opentelemetry.trace"


@contextmanager
def span(name: str, **attributes: Attribute) -> Iterator[Any]:
    """Record what a block does as a span, if the program records any. Provide the span, or None.

    Args:
        attributes: with "__" for each dot.
    """
    api: Any = sys.modules.get(_API)
    if api is None:
        yield None
        return
    tracer = api.get_tracer("ricordo", version("ricordo"))
    given = {name.replace("__", "."): value for name, value in attributes.items()}
    # The message of an error may quote what was given.
    with tracer.start_as_current_span(
        name, attributes=given, record_exception=False, set_status_on_exception=False
    ) as current:
        try:
            yield current
        except BaseException as error:
            kind = error.code if isinstance(error, RicordoError) else type(error).__name__
            current.set_attribute("error.type", kind)
            current.set_status(api.StatusCode.ERROR)
            raise


def spanned(methods: Mapping[str, Attributes]) -> Callable[[T], T]:
    """Record each call of some coroutine methods of a class as a span "ricordo.METHOD" that tells of the answer."""

    def record(cls: T) -> T:
        for name, attributes in methods.items():
            setattr(cls, name, _recorded(name, getattr(cls, name), attributes))
        return cls

    return record


def _recorded(name: str, work: Callable[..., Any], attributes: Attributes) -> Callable[..., Any]:
    assert inspect.iscoroutinefunction(work)

    @functools.wraps(work)
    async def call(called: Any, /, *given: Any, **options: Any) -> Any:
        if _API not in sys.modules:
            return await work(called, *given, **options)
        with span(f"ricordo.{name}") as current:
            answer = await work(called, *given, **options)
            current.set_attributes(dict(attributes(answer)))
            return answer

    return call


def counted(name: str) -> Attributes:
    """Return what a span says of an answer of several: how many."""

    def attributes(answer: Sequence[object]) -> Mapping[str, Attribute]:
        return {f"ricordo.{name}": len(answer)}

    return attributes
