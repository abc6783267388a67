"""Whose words they are: what decides whether "my wife" is the owner's."""

from __future__ import annotations

from ricordo.model import Origin, Role
from ricordo.text import same_name_key
from ricordo.text.languages import all_languages, cached
from ricordo.trust import trust_of


def is_persons_word(role: Role | None, origin: Origin) -> bool:
    """Whether a person said this, and neither an assistant nor a tool nor a page."""
    return role == "user" and trust_of(origin, role) == "user"


def is_owners_word(role: Role | None, origin: Origin, speaker: str | None, *, owner: str) -> bool:
    """Whether the owner of a memory said this: a user's turn or statement that names no other speaker.

    Args:
        owner: whose memory it is; "" for a group's, where nobody's word is the owner's.
    """
    if not owner or not is_persons_word(role, origin):
        return False
    if speaker is None or speaker.casefold() in _self_words():
        return True
    return same_name_key(speaker) == same_name_key(owner) != ""


@cached()
def _self_words() -> frozenset[str]:
    """Return how a transcript names the owner of a memory: me, user."""
    return all_languages().words(lambda each: each.sentences.speakers)
