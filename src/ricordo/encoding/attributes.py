"""The caller's own JSON, and labels, checked at the door."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ricordo.encoding.validation import check_encodable, short_name
from ricordo.errors import InvalidError
from ricordo.model import Json

_MAX_CHARS = 100_000
_MAX_TAGS = 100


def checked_attributes(given: Json | None) -> Json:
    """A JSON object, by value.

    Raises:
        InvalidError: it is none, holds NaN or infinity, or is larger than 100,000 characters.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidError("attributes must be a JSON object", hint="pass a dict with text keys")
    if not given:
        return {}
    try:
        text = json.dumps(dict(given), allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidError(f"attributes cannot be written as JSON: {error}") from error
    if len(text) > _MAX_CHARS:
        raise InvalidError(f"attributes have {len(text):,} characters", hint=f"at most {_MAX_CHARS:,} are taken")
    check_encodable(text, name="attributes")
    found: dict[str, Any] = json.loads(text)
    return found


def checked_tags(given: Iterable[str]) -> tuple[str, ...]:
    """Distinct tags in the order given.

    Raises:
        InvalidError: a tag is blank or too long, there are more than 100, or a bare string was passed.
    """
    if isinstance(given, str):
        raise InvalidError("tags must be a list of texts, not one text", hint=f"pass [{given!r}]")
    tags = tuple(dict.fromkeys(short_name(tag, name="tags") or "" for tag in given))
    if len(tags) > _MAX_TAGS:
        raise InvalidError(f"{len(tags)} tags", hint=f"at most {_MAX_TAGS} are taken")
    return tags
