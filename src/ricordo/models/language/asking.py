"""One question to a model, in a form that code can rely on: what comes back is checked, and repaired once."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from ricordo.errors import UnavailableError
from ricordo.ports import Completion, LanguageModel, Turn

Shape = TypeVar("Shape", bound=BaseModel)

_MOST_ANSWER_CHARS = 400_000
_FENCED = re.compile(r"\A\s*```(?:json)?\s*(.*?)\s*```\s*\Z", re.DOTALL)
_SHOWN = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(Generic[Shape]):
    """An answer in its form, and the tokens that it took, those of a repair included."""

    value: Shape
    tokens_in: int
    tokens_out: int


class AnswerError(UnavailableError):
    """A model was asked and gave no answer that can be used. `tokens_in` and `tokens_out` are spent all the same."""

    def __init__(self, message: str, *, tokens_in: int = 0, tokens_out: int = 0) -> None:
        super().__init__(message)
        self.tokens_in = tokens_in
        self.tokens_out = tokens_out


async def ask(model: LanguageModel, turns: Sequence[Turn], shape: type[Shape], *, max_tokens: int) -> Asked[Shape]:
    """Ask for JSON of a shape. An answer that does not fit is sent back once with what is wrong with it.

    Raises:
        AnswerError: the model refused, was cut off, or its answer does not fit the second time either.
        RicordoError: the model could not be asked.
    """
    schema = schema_of(shape)
    first = await model.complete(turns, schema=schema, max_tokens=max_tokens)
    value, wrong = _read(first, shape)
    if value is not None:
        return Asked(value=value, tokens_in=first.tokens_in, tokens_out=first.tokens_out)
    if first.ending == "refused":
        raise AnswerError("the model refused to answer", tokens_in=first.tokens_in, tokens_out=first.tokens_out)
    again = [*turns, Turn(role="assistant", text=first.text[:_SHOWN]), Turn(role="user", text=_repair(wrong, first))]
    second = await model.complete(again, schema=schema, max_tokens=max_tokens)
    value, wrong = _read(second, shape)
    tokens_in, tokens_out = first.tokens_in + second.tokens_in, first.tokens_out + second.tokens_out
    if value is None:
        said = f"the model's answer does not fit: {wrong}"
        raise AnswerError(said, tokens_in=tokens_in, tokens_out=tokens_out)
    return Asked(value=value, tokens_in=tokens_in, tokens_out=tokens_out)


def _repair(wrong: str, first: Completion) -> str:
    shorter = " It was cut off: say less." if first.ending == "cut" else ""
    return f"This is not the JSON that was asked for: {wrong}.{shorter} Answer again with that JSON object alone."


def _read(said: Completion, shape: type[Shape]) -> tuple[Shape | None, str]:
    """The value, or None and what is wrong, in words that hold nothing of the answer."""
    if said.ending == "cut":
        return None, "it ends in the middle"
    if len(said.text) > _MOST_ANSWER_CHARS:
        return None, "it is far too long"
    fenced = _FENCED.match(said.text)
    try:
        return shape.model_validate_json(fenced[1] if fenced else said.text), ""
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        return None, f"{where}: {first['msg']}" if where else str(first["type"]).replace("_", " ")
    except ValueError:
        return None, "it is no JSON"


def schema_of(shape: type[BaseModel]) -> Mapping[str, Any]:
    """The JSON schema of a shape in the strict form that servers ask for: all properties required, and no others."""
    schema = shape.model_json_schema()
    found: Mapping[str, Any] = _strict(schema)
    return found


def _strict(part: Any) -> Any:
    if isinstance(part, list):
        return [_strict(each) for each in part]
    if not isinstance(part, dict):
        return part
    kept = {name: _strict(each) for name, each in part.items() if name not in ("default", "maxItems", "maxLength")}
    if isinstance(kept.get("properties"), dict):
        kept["required"] = list(kept["properties"])
        kept["additionalProperties"] = False
    return kept


def as_text(schema: Mapping[str, Any]) -> str:
    """A schema as a prompt shows it, where a server cannot be given one."""
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
