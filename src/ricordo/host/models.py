"""Which model does what, by configuration: one answers in chats, one turns conversations into knowledge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ricordo.settings import Settings

if TYPE_CHECKING:
    from ricordo.ports import ChatModel, LanguageModel

Part = Literal["chat", "consolidation"]


class Models:
    """The models of a host by their part. Made when first asked for; an extension asks here, and never for keys."""

    def __init__(
        self,
        settings: Settings,
        *,
        chat: str | ChatModel | None = None,
        consolidation: str | LanguageModel | None = None,
    ) -> None:
        """Args:
        chat: who answers; the setting `chat_model` where None, else the model that consolidates.
        consolidation: who turns conversations into knowledge; the setting `model` where None.
        """
        self._settings = settings
        self._consolidation = consolidation or named(settings.model)
        self._chat = chat or named(settings.chat_model) or self._consolidation
        self._made: ChatModel | None = None

    @property
    def is_for_chat(self) -> bool:
        """Whether there is a model that answers."""
        return self._chat is not None

    @property
    def consolidation(self) -> str | LanguageModel | None:
        """For `Memory.open(model=...)`."""
        return self._consolidation

    def chat(self) -> ChatModel | None:
        """Who answers, or None.

        Raises:
            InvalidError: there is no such model, or it cannot answer piece by piece.
            UnavailableError: its packages are not installed.
        """
        if self._made is None and self._chat is not None:
            from ricordo.models.language import chat_model_from_settings  # pydantic takes a tenth of a second to import

            self._made = chat_model_from_settings(self._chat, self._settings)
        return self._made


def named(spec: str) -> str | None:
    """A model's name as settings give it; "" and "none" are none."""
    return spec if spec not in ("", "none") else None
