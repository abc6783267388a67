"""Language models that answer prompts in JSON. Nothing is loaded and no server is contacted before the first prompt."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from ricordo.errors import InvalidError, UnavailableError
from ricordo.ports import ChatModel, Completion, Turn
from ricordo.settings import Settings, api_key

if TYPE_CHECKING:
    from ricordo.ports import LanguageModel

Shape = TypeVar("Shape", bound=BaseModel)

_BASE_URLS = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com/v1",
    "ollama": "http://localhost:11434/v1",
}
_CONTEXT_TOKENS = {"openai": 128_000, "anthropic": 200_000}
_DEFAULT_CONTEXT_TOKENS = 8_192
_KNOWN = (
    "choose openai:MODEL, anthropic:MODEL, ollama:MODEL, http://HOST/v1#MODEL for any server that speaks OpenAI's "
    "protocol, or file:PATH.gguf"
)


# ---- names of models


def resolve(
    spec: str | LanguageModel | None,
    *,
    api_key: str | None = None,
    base_url: str | None = None,
    context_tokens: int | None = None,
    timeout_s: float = 120.0,
    attempts: int = 3,
    first_wait_s: float = 0.5,
) -> LanguageModel | None:
    """Return the language model with a name (see `Memory.open`). None and objects are returned unchanged.

    Args:
        api_key: for servers only; the caller reads it from the environment.
        base_url: replaces the server's default address.
        context_tokens: the model's context window; by default the provider's, else 8,192.
        timeout_s: limit for one complete answer, in seconds.
        attempts: number of attempts before a request counts as failed; at least 1.
        first_wait_s: seconds before the second attempt; the wait doubles, with jitter, for each further one.

    Raises:
        InvalidError: no model has this name, or the object is not a model.
        UnavailableError: the model's packages are not installed.
    """
    if spec is None:
        return None
    if not isinstance(spec, str):
        return _checked_object(spec)
    provider, _, model = spec.partition(":")
    if provider == "file" and model:
        from ricordo.models.language.local import LocalModel

        return LocalModel(model, context_tokens=context_tokens or _DEFAULT_CONTEXT_TOKENS)
    url = _BASE_URLS.get(provider, "")
    if provider in ("http", "https"):
        url, _, model = spec.partition("#")
    if not url or not model:
        raise InvalidError(f"there is no language model {spec!r}", hint=_KNOWN)
    from ricordo.models.http import Endpoint, key_variable
    from ricordo.models.language.servers import AnthropicModel, OpenAIModel, headers

    tokens = context_tokens or _CONTEXT_TOKENS.get(provider, _DEFAULT_CONTEXT_TOKENS)
    endpoint = Endpoint(
        base_url=base_url or url,
        what="model's server",
        headers=headers(provider, api_key),
        key_variable="" if base_url else key_variable(provider),
        timeout_s=timeout_s,
        attempts=attempts,
        first_wait_s=first_wait_s,
    )
    if provider == "anthropic":
        return AnthropicModel(f"anthropic:{model}", endpoint, model=model, context_tokens=tokens)
    name = f"{'http' if provider == 'https' else provider}:{model}"
    is_openai = provider == "openai"
    return OpenAIModel(name, endpoint, model=model, context_tokens=tokens, is_openai=is_openai)


def _checked_object(candidate: LanguageModel) -> LanguageModel:
    missing = [part for part in ("name", "context_tokens", "complete") if not hasattr(candidate, part)]
    if missing:
        raise InvalidError(f"a {type(candidate).__name__} is not a language model: it lacks {', '.join(missing)}")
    return candidate


def key_provider(spec: object) -> str | None:
    """Return the provider whose API key a model needs, or None."""
    provider = spec.partition(":")[0] if isinstance(spec, str) else ""
    return provider if provider in ("openai", "anthropic") else None


def model_from_settings(model: str | LanguageModel | None, settings: Settings) -> LanguageModel | None:
    """Return the language model with a name, using limits from the settings and the provider's API key."""
    provider = key_provider(model)
    return resolve(
        model,
        api_key=None if provider is None else api_key(provider),
        timeout_s=settings.model_timeout_s,
        context_tokens=settings.model_context_tokens or None,
    )


def chat_model_from_settings(model: str | LanguageModel | ChatModel | None, settings: Settings) -> ChatModel | None:
    """Return a model as `model_from_settings` does, for streamed answers.

    Raises:
        InvalidError: no model has this name, or it cannot stream.
    """
    found = model if isinstance(model, ChatModel) else model_from_settings(model, settings)
    if found is not None and not isinstance(found, ChatModel):
        raise InvalidError(f"model: {found.name} cannot stream answers", hint="choose a model with a `stream` method")
    return found


# ---- validated answers

_MOST_ANSWER_CHARS = 400_000
_MOST_QUOTED_CHARS = 2_000
_MOST_STARTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Generic[Shape]):
    """A validated answer, and the tokens it cost, including those of a repair.

    `lost` is the number of list items that were dropped as invalid.
    """

    value: Shape
    tokens_in: int
    tokens_out: int
    lost: int = 0


class AnswerError(UnavailableError):
    """A model gave no usable answer. `tokens_in` and `tokens_out` were used nevertheless."""

    def __init__(self, message: str, *, tokens_in: int = 0, tokens_out: int = 0) -> None:
        super().__init__(message)
        self.tokens_in = tokens_in
        self.tokens_out = tokens_out


async def ask(model: LanguageModel, turns: Sequence[Turn], shape: type[Shape], *, max_tokens: int) -> Answer[Shape]:
    """Ask for JSON that matches a pydantic model. An invalid answer is sent back once, with the reason.

    If the second answer is also invalid, its valid list items are kept, or those of the first answer if it has none.

    Raises:
        AnswerError: the model refused, was cut off, or neither answer has a valid item.
        RicordoError: the model cannot be reached.
    """
    schema = schema_of(shape)
    first = await model.complete(turns, schema=schema, max_tokens=max_tokens)
    value, problem = _read(first, shape)
    if value is not None:
        return Answer(value=value, tokens_in=first.tokens_in, tokens_out=first.tokens_out)
    if first.ending == "refused":
        raise AnswerError("the model refused to answer", tokens_in=first.tokens_in, tokens_out=first.tokens_out)
    quoted = Turn(role="assistant", text=first.text[:_MOST_QUOTED_CHARS])
    again = [*turns, quoted, Turn(role="user", text=_repair(problem, first))]
    second = await model.complete(again, schema=schema, max_tokens=max_tokens)
    value, problem = _read(second, shape)
    lost = 0
    if value is None:
        value, lost = _salvaged(second, shape) or _salvaged(first, shape) or (None, 0)
    tokens_in, tokens_out = first.tokens_in + second.tokens_in, first.tokens_out + second.tokens_out
    if value is None:
        raise AnswerError(
            f"the model's answer does not match the schema: {problem}", tokens_in=tokens_in, tokens_out=tokens_out
        )
    return Answer(value=value, tokens_in=tokens_in, tokens_out=tokens_out, lost=lost)


def _salvaged(completion: Completion, shape: type[Shape]) -> tuple[Shape, int] | None:
    """Return an answer without its invalid list items, and their number; None if no item is valid."""
    if completion.ending == "cut" or len(completion.text) > _MOST_ANSWER_CHARS:
        return None
    try:
        given = json.loads(_json_in(completion.text))
        shape.model_validate(given)
    except ValidationError as error:
        places = {each["loc"][:2] for each in error.errors(include_input=False, include_url=False)}
    except ValueError:
        return None
    if not all(len(place) == 2 and isinstance(place[1], int) for place in places):
        return None
    names = {str(name) for name, _ in places}
    kept = {name: [each for n, each in enumerate(given[name]) if (name, n) not in places] for name in names}
    try:
        return (shape.model_validate({**given, **kept}), len(places)) if any(kept.values()) else None
    except ValidationError:
        return None


def _repair(problem: str, first: Completion) -> str:
    shorter = " It was cut off: say less." if first.ending == "cut" else ""
    return f"This is not the JSON that was asked for: {problem}.{shorter} Answer again with that JSON object alone."


def _read(completion: Completion, shape: type[Shape]) -> tuple[Shape | None, str]:
    """Return the value; or None, and a description of the problem that does not quote the answer."""
    if completion.ending == "cut":
        return None, "it ends in the middle"
    if len(completion.text) > _MOST_ANSWER_CHARS:
        return None, "it is far too long"
    try:
        return shape.model_validate_json(_json_in(completion.text)), ""
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        return None, f"{where}: {first['msg']}" if where else str(first["type"]).replace("_", " ")
    except ValueError:
        return None, "it is not JSON"


def _json_in(text: str) -> str:
    """Return the JSON object within an answer, which may contain other text; the full text if there is none."""
    if text.lstrip()[:1] in ("{", "["):
        return text
    decoder = json.JSONDecoder()
    for place in list(re.finditer(r"\{", text))[:_MOST_STARTS]:
        try:
            value, end = decoder.raw_decode(text, place.start())
        except ValueError:
            continue
        if isinstance(value, dict):
            return text[place.start() : end]
    return text


def schema_of(shape: type[BaseModel]) -> Mapping[str, Any]:
    """Return a JSON schema in the strict form that servers require: all properties required, no others allowed."""
    found: Mapping[str, Any] = _strict(shape.model_json_schema())
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
