"""What a text must be before it is stored."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from ricordo.errors import InvalidError
from ricordo.model import SecretsPolicy
from ricordo.text.recalled import PLACE, without_recalled
from ricordo.text.secrets import redact

MAX_NAME_CHARS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRules:
    """The settings that decide on a text."""

    secrets: SecretsPolicy = "redact"
    max_chars: int = 10_000_000

    @property
    def at_once(self) -> TextRules:
        """For a caller who does not wait: all but credentials, which are replaced before anything is stored."""
        return replace(self, secrets="keep") if self.secrets == "redact" else self


def storable(text: str, *, name: str, rules: TextRules) -> str:
    """The text as it will be stored: whole, but for credentials and for what this memory itself has recalled.

    Raises:
        InvalidError: it is no text, blank, too long, cannot be written as UTF-8, holds a credential and the policy
            is to refuse, or is a fact that holds nothing but recalled text.
    """
    if not isinstance(text, str):
        raise InvalidError(f"{name} must be text, not {type(text).__name__}")
    if not text or text.isspace():
        raise InvalidError(f"{name} is empty", hint="there is nothing to remember in it")
    if len(text) > rules.max_chars:
        raise InvalidError(f"{name} has {len(text):,} characters", hint=f"at most {rules.max_chars:,} are taken")
    check_encodable(text, name=name)
    text = without_recalled(text)
    if name == "content" and not text.replace(PLACE, "").strip():
        raise InvalidError(f"{name} is text this memory recalled", hint="`confirm` or `reinforce` what it came from")
    if rules.secrets == "keep":
        return text
    redacted = redact(text)
    if redacted.findings and rules.secrets == "refuse":
        kinds = ", ".join(sorted({finding.kind for finding in redacted.findings}))
        raise InvalidError(f"{name} holds a credential ({kinds})", hint="leave it out, or set secrets to redact")
    return redacted.text


def check_choice(value: object, allowed: Collection[str], *, name: str) -> None:
    """Raises:
    InvalidError: the value is none of those allowed.
    """
    if not isinstance(value, str) or value not in allowed:
        raise InvalidError(f"{name}: {value!r} is unknown", hint=f"choose one of {', '.join(sorted(allowed))}")


def check_encodable(text: str, *, name: str) -> None:
    """Raises:
    InvalidError: the text has an unpaired surrogate, which no database and no JSON can hold.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidError(
            f"{name} has an unpaired surrogate at character {error.start}",
            hint="decode the bytes it came from with errors='replace'",
        ) from error


def short_name(text: str | None, *, name: str) -> str | None:
    """A speaker, a tag, a session id or another label: one line of at most 500 characters, or None.

    Raises:
        InvalidError: it is blank, too long, or not text.
    """
    if text is None:
        return None
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_NAME_CHARS:
        raise InvalidError(f"{name} must be 1 to {MAX_NAME_CHARS} characters of text")
    check_encodable(text, name=name)
    return text.strip()
