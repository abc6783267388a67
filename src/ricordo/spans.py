"""OpenTelemetry spans. The API is never imported here, and is used only if the program has imported it, so programs
without tracing have no cost. No span contains the text of a memory, a question, an owner or an error.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from typing import Any

from ricordo.errors import RicordoError

Attribute = str | int | float | bool

API = "opentelemetry.trace"
"""The module of the API. Spans are recorded once the program has imported it."""

_version = cache(version)  # each call parses the metadata of the package: a millisecond


@contextmanager
def span(name: str, **attributes: Attribute) -> Iterator[Any]:
    """Record a block as a span, if the program records spans. Yield the span, or None.

    Args:
        attributes: attributes of the span; "__" stands for a dot.
    """
    api: Any = sys.modules.get(API)
    if api is None:
        yield None
        return
    tracer = api.get_tracer("ricordo", _version("ricordo"))
    given = {name.replace("__", "."): value for name, value in attributes.items()}
    # The message of an error may quote user data.
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
