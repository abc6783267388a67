"""Which stored conversation an imported chat continues.

Slack and Telegram give a chat an id. WhatsApp does not, and the name of its file says little: `_chat.txt` is every chat
on an iPhone, and "(1)" is added to a second download. Such a chat is therefore named after its people, and it continues
the conversation that already holds its messages.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count

from ricordo.clock import from_ms
from ricordo.encoding.episodes import Instant
from ricordo.model import Conversation, Scope
from ricordo.portability.records import MALFORMED, ImportedChat, ImportedMessage, Records
from ricordo.storage import Snapshot

_SOURCES = frozenset(("whatsapp", "telegram", "slack"))
_MANY = re.compile(r"(?<!\d)\d+ people [0-9a-f]{8}")
"""Matches a name that lists no people."""
_NUMBER = re.compile(r" \(\d+\)\Z")
_MOST_SESSIONS = 20_000
_SAMPLE = 50
_ZONES = timedelta(days=1)
"""The owner's time zone may have changed since the first import."""

_Timed = tuple[datetime, ImportedMessage]


def settle(tx: Snapshot, records: Records, *, scope: Scope, instant: Instant) -> None:
    """Move each chat to the stored conversation that it continues, and give its messages the ids they have there."""
    if not records.chats:
        return
    listed = tx.sessions.listed(scope, most=_MOST_SESSIONS)
    stored = {each.id: each for each in listed if each.chat == (scope.chat or "")}
    turns = defaultdict[str | None, list[ImportedMessage]](list)
    for each in records.messages.values():
        turns[each.message.session].append(each)
    for chat in records.chats.values():
        said = turns[chat.session]
        matching = _Matching(tx, records, _timed(said, instant))
        session = matching.session_of(chat, stored)
        keys = matching.former_keys(stored[session]) if session in stored else {}
        if session != chat.session or keys:
            for each in said:
                del records.messages[each.message.id or ""]
                key = keys.get(each.key, each.key)
                records.turn(each.place, replace(each.message, session=session), key)


def _timed(said: Sequence[ImportedMessage], instant: Instant) -> list[_Timed]:
    found = []
    for each in said:
        try:
            found.append((from_ms(instant(each.message.at, "at")), each))  # type: ignore[arg-type]
        except MALFORMED:  # the message is refused later
            continue
    return found


class _Matching:
    """Compares the messages of one chat with stored conversations."""

    def __init__(self, tx: Snapshot, records: Records, said: Sequence[_Timed]) -> None:
        self._tx = tx
        self._records = records
        self._said = sorted(said, key=_at)

    def session_of(self, chat: ImportedChat, stored: dict[str, Conversation]) -> str:
        """Return the session of a chat: a stored one if it continues that, else its own, which is then free."""
        if chat.is_certain and chat.session in stored:
            return chat.session
        shared = {id: self._shared(chat.session, each) for id, each in stored.items() if _may_be(chat, id)}
        most = max(shared, key=shared.__getitem__, default="")
        if shared.get(most):
            return most
        if chat.session not in stored or chat.is_certain or not self._during(stored[chat.session]):
            return chat.session
        return next(name for number in count(2) if (name := f"{chat.session} ({number})") not in stored)

    def _shared(self, chat: str, session: Conversation) -> int:
        """Return how many messages the chat shares with a session; 0 if they are two conversations.

        They are one if most messages of the time they have in common are in both, from more than one speaker: somebody
        may send the same greeting to several chats.
        """
        sample = self._during(session) or self._during(session, _ZONES)
        if not self._known(sample[:: max(1, len(sample) // _SAMPLE)], session.id):
            return 0
        near = self._during(session, _ZONES)
        known = self._known(near, session.id)
        least = min(len(near), session.messages)
        is_stricter = _is_many(chat) != _is_many(session.id) and session.id.split("/")[0] in _SOURCES
        speakers = 2 if is_stricter else min(2, least, len(_speakers(near)))
        return len(known) if 2 * len(known) >= least and len(_speakers(known)) >= speakers else 0

    def former_keys(self, session: Conversation) -> dict[tuple[object, ...], tuple[object, ...]]:
        """Return, by their keys now, the keys that earlier versions gave to messages that are stored under these."""
        last = [each for each in self._said if abs(each[0] - session.last_at) <= _ZONES]
        keys = {each.key: _former(each.key) for _, each in last}
        ids = {key: self._records.id_in(session.id, old) for key, old in keys.items()}
        known = self._tx.nodes.known_ids(list(ids.values())) if ids else {}
        return {key: old for key, old in keys.items() if ids[key] in known}

    def _during(self, session: Conversation, more: timedelta = timedelta()) -> list[_Timed]:
        first = bisect_left(self._said, session.begun_at - more, key=_at)
        return self._said[first : bisect_right(self._said, session.last_at + more, key=_at)]

    def _known(self, said: Sequence[_Timed], session: str) -> list[_Timed]:
        """Return the messages that are stored in a session."""
        ids = [[self._records.id_in(session, key) for key in (each.key, _former(each.key))] for _, each in said]
        known = self._tx.nodes.known_ids([id for both in ids for id in both]) if ids else {}
        return [each for each, both in zip(said, ids, strict=True) if not known.keys().isdisjoint(both)]


def _at(said: _Timed) -> datetime:
    return said[0]


def _former(key: tuple[object, ...]) -> tuple[object, ...]:
    """Return the key of a message as earlier versions made it for the last one in a file, with a line break."""
    return (*key[:-1], f"{key[-1]}\n")


def _speakers(said: Sequence[_Timed]) -> set[str | None]:
    return {each.message.speaker for _, each in said}


def _may_be(chat: ImportedChat, session: str) -> bool:
    """Return whether a stored session, by its name, can be the chat: not if it is of another source or of others."""
    if chat.is_certain:
        return session == chat.former
    source, _, theirs = session.partition("/")
    own_source, _, own = chat.session.partition("/")
    if source not in _SOURCES:
        return True  # named by an earlier version
    names, own_names = _names(theirs), _names(own)
    is_named = names and own_names
    return source == own_source and (not is_named or len(names & own_names) >= min(2, len(names), len(own_names)))


def _is_many(session: str) -> bool:
    return _MANY.search(session) is not None


def _names(described: str) -> frozenset[str]:
    """Return the people that the name of a session lists; none if there are many."""
    return frozenset() if _is_many(described) else frozenset(_NUMBER.sub("", described).split(", "))
