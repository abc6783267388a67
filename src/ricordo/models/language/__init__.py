"""Language models: JSON in answer to a prompt. Nothing is loaded and nobody is asked before the first prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ricordo.errors import InvalidError
from ricordo.models.language.asking import Asked, ask
from ricordo.models.language.scripted import ScriptedModel

if TYPE_CHECKING:
    from ricordo.ports import LanguageModel

__all__ = ["Asked", "ScriptedModel", "ask", "key_provider", "resolve"]

_BASES = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com/v1",
    "ollama": "http://localhost:11434/v1",
}
_CONTEXT = {"openai": 128_000, "anthropic": 200_000}
_DEFAULT_CONTEXT = 8_192


def key_provider(spec: object) -> str | None:
    """Whose key a model's name asks for, if anybody's."""
    provider = spec.partition(":")[0] if isinstance(spec, str) else ""
    return provider if provider in ("openai", "anthropic") else None


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
    """The language model of a name. None stays None, an object with the methods of one stays itself.

    Args:
        spec: "openai:MODEL", "anthropic:MODEL", "ollama:MODEL", "http(s)://HOST/v1#MODEL" for any server that speaks
            OpenAI's protocol (llama.cpp, vLLM, LM Studio), or "file:PATH.gguf".
        api_key: for the servers only; the caller reads it from the environment.
        base_url: in place of the server's own address.
        context_tokens: how many tokens the model takes; by the provider, or 8,192, when None.
        timeout_s: for one whole answer, in seconds.
        attempts: how often a request is made before it counts as failed, at least once.
        first_wait_s: seconds before the second attempt; it doubles, with jitter, for each one after.

    Raises:
        InvalidError: there is no such model, or the object is none.
        UnavailableError: the model's packages are not installed.
    """
    if spec is None:
        return None
    if not isinstance(spec, str):
        return _brought(spec)
    provider, _, model = spec.partition(":")
    if provider == "file" and model:
        from ricordo.models.language.local import LocalModel

        return LocalModel(model, context_tokens=context_tokens or _DEFAULT_CONTEXT)
    where = _BASES.get(provider, "")
    if provider in ("http", "https"):
        where, _, model = spec.partition("#")
    if not where or not model:
        raise InvalidError(f"there is no language model {spec!r}", hint=_KNOWN)
    room = context_tokens or _CONTEXT.get(provider, _DEFAULT_CONTEXT)
    patience: dict[str, Any] = {"timeout_s": timeout_s, "attempts": attempts, "first_wait_s": first_wait_s}
    return _served(provider, model, base_url or where, api_key, room, patience)


_KNOWN = (
    "known are openai:MODEL, anthropic:MODEL, ollama:MODEL, http://HOST/v1#MODEL for any server that speaks OpenAI's "
    "protocol, and file:PATH.gguf"
)


def _served(
    provider: str, model: str, where: str, key: str | None, room: int, patience: dict[str, Any]
) -> LanguageModel:
    from ricordo.models.http import Endpoint, bearer

    if provider == "anthropic":
        from ricordo.models.language.anthropic import AnthropicModel, headers

        at = Endpoint(base_url=where, what="model's server", headers=headers(key), **patience)
        return AnthropicModel(f"anthropic:{model}", at, model=model, context_tokens=room)
    from ricordo.models.language.openai import OpenAIModel

    at = Endpoint(base_url=where, what="model's server", headers=bearer(key), **patience)
    name = f"{'http' if provider == 'https' else provider}:{model}"
    return OpenAIModel(name, at, model=model, context_tokens=room, is_openai=provider == "openai")


def _brought(candidate: LanguageModel) -> LanguageModel:
    """A model of the caller's own, if it has what one needs."""
    missing = [part for part in ("name", "context_tokens", "complete") if not hasattr(candidate, part)]
    if missing:
        raise InvalidError(f"a {type(candidate).__name__} is no language model: it lacks {', '.join(missing)}")
    return candidate
