"""The language model that somebody chose, as the settings have it asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ricordo.errors import InvalidError
from ricordo.models.language import key_provider, resolve
from ricordo.ports import ChatModel
from ricordo.settings import Settings, api_key

if TYPE_CHECKING:
    from ricordo.ports import LanguageModel


def chosen(model: str | LanguageModel | None, settings: Settings) -> LanguageModel | None:
    """The language model meant, with the key its provider's own tools would use.

    Raises:
        InvalidError: there is no such model.
    """
    provider = key_provider(model)
    return resolve(
        model,
        api_key=None if provider is None else api_key(provider),
        timeout_s=settings.model_timeout_s,
        context_tokens=settings.model_context_tokens or None,
    )


def chosen_for_chat(model: str | LanguageModel | ChatModel | None, settings: Settings) -> ChatModel | None:
    """The same for one that answers piece by piece.

    Raises:
        InvalidError: there is no such model, or it cannot do that.
    """
    found = model if isinstance(model, ChatModel) else chosen(model, settings)
    if found is not None and not isinstance(found, ChatModel):
        raise InvalidError(f"model: {found.name} cannot answer piece by piece", hint="it lacks `stream`")
    return found
