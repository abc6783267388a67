"""Validate what the caller gives before it is stored: texts, names, labels and attributes."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import datetime
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ricordo.clock import checked_id, to_ms
from ricordo.errors import InvalidError
from ricordo.model import DOCUMENT, Change, Json, Node, Reason, Scope, SecretsPolicy
from ricordo.storage import Snapshot, values
from ricordo.storage.protocol import Gate, possible_voices
from ricordo.storage.values import check_encodable
from ricordo.text.prompt_text import NO_TEXT, PLACE, strings_of, without_recalled
from ricordo.text.relations import is_persons_word

if TYPE_CHECKING:
    from ricordo.text.secrets import Redacted

MAX_NAME_CHARS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRules:
    """The settings that texts are checked against."""

    secrets: SecretsPolicy = "redact"
    max_chars: int = 10_000_000
    personal: frozenset[str] = frozenset()
    """The kinds of personal data to replace."""

    @property
    def lets_all_in(self) -> bool:
        """Whether texts are stored unchanged."""
        return self.secrets == "keep" and not self.personal

    @property
    def at_once(self) -> TextRules:
        """Rules for a caller who does not wait: text is refused at once, but replaced later, before it is stored."""
        return self if self.secrets == "refuse" else self.open

    @property
    def open(self) -> TextRules:
        """Rules that neither replace nor refuse anything in a text."""
        return replace(self, secrets="keep", personal=frozenset())


SCREENED = TextRules()
"""Rules for labels, if the caller has none."""

AS_GIVEN = TextRules(secrets="keep")
"""Rules for text that is looked up and not stored."""


def storable(text: str, *, name: str, rules: TextRules) -> str:
    """Return the text as it will be stored: without credentials, and without text recalled from this memory.

    Raises:
        InvalidError: it is not a str, blank, too long, cannot be written as UTF-8, contains a credential that the
            policy refuses, or is a fact that consists of recalled text.
    """
    if not isinstance(text, str):
        raise InvalidError(f"{name} must be text, not {type(text).__name__}")
    if not text or text.isspace():
        raise InvalidError(f"{name} is empty", hint="give text that is not blank")
    if len(text) > rules.max_chars:
        raise InvalidError(f"{name} has {len(text):,} characters", hint=f"at most {rules.max_chars:,} are allowed")
    check_encodable(text, name=name)
    text = without_recalled(text)
    if name == "content" and not text.replace(PLACE, "").strip():
        raise InvalidError(
            f"{name} is text that was recalled from this memory",
            hint="use `confirm` or `reinforce` on the original memory",
        )
    return without_secrets(text, name=name, rules=rules)


def without_secrets(text: str, *, name: str, rules: TextRules) -> str:
    """Return a text after the policies for credentials and personal data are applied. Raises InvalidError."""
    if rules.secrets != "keep":
        text = _without_credentials(text, name=name, rules=rules)
    if rules.personal:
        from ricordo.text.secrets import redact_personal  # imported late, as `redact` is

        text = redact_personal(text, rules.personal).text
    return text


def _without_credentials(text: str, *, name: str, rules: TextRules) -> str:
    from ricordo.text.secrets import redact  # imported late: compiling its patterns would delay a search

    redacted = redact(text) if len(text) > _CACHED_CHARS else _redacted(text)
    if redacted.findings and rules.secrets == "refuse":
        kinds = ", ".join(sorted({finding.kind for finding in redacted.findings}))
        raise InvalidError(f"{name} holds a credential ({kinds})", hint="leave it out, or set secrets to redact")
    return redacted.text


_CACHED_CHARS = 2_000


@lru_cache(maxsize=4_096)  # each text is checked twice: when it arrives, and in the change that stores it
def _redacted(text: str) -> Redacted:
    from ricordo.text.secrets import redact

    return redact(text)


def redactions(given: str, stored: str) -> int:
    """Return how many credentials or personal data were replaced in a text."""
    return len(_KIND.findall(stored)) - len(_KIND.findall(given))


def removed(given: str, stored: str) -> str:
    """Return the kinds of credentials and personal data that were replaced in a text, such as "password"."""
    return ", ".join(sorted(Counter(_KIND.findall(stored)) - Counter(_KIND.findall(given))))


KEEPING = (
    "the owner keeps a credential on purpose with `ricordo remember --keep-secrets`; own programs, with `keep_secrets`"
)


def removal_notice(given: str, stored: str) -> str:
    """Return a sentence about what was replaced in a text; "" if nothing was."""
    kinds = removed(given, stored)
    return f"Removed before it was stored: {kinds}. {KEEPING[:1].upper()}{KEEPING[1:]}." if kinds else ""


def check_choice(value: object, allowed: Collection[str], *, name: str) -> None:
    """Raise InvalidError if the value is not one of those allowed."""
    if not isinstance(value, str) or value not in allowed:
        raise InvalidError(f"{name}: {value!r} is unknown", hint=f"choose one of {', '.join(sorted(allowed))}")


def stored_id(given: str, *, rules: TextRules) -> str:
    """Return the caller's id, checked by `checked_id`. A credential is refused, because an id cannot be redacted; what
    looks like personal data is accepted, because ids of mails look like addresses.
    """
    id = checked_id(given)
    if not _UUID.fullmatch(id) and _of_identifier(id, name="id", rules=replace(rules, personal=frozenset())) != id:
        raise InvalidError("id holds a credential", hint="leave it out to get one")
    return id


def _of_identifier(text: str, *, name: str, rules: TextRules) -> str:
    """Return an id or the name of a session without credentials. Ids of other programs, such as `wamid_` and 20 random
    letters, look like tokens of an unknown vendor; they are kept.
    """
    if rules.lets_all_in or _holds_ids_only(
        without_secrets(text, name=name, rules=replace(SCREENED, personal=rules.personal))
    ):
        return text
    return without_secrets(text, name=name, rules=rules)


def _holds_ids_only(clean: str) -> bool:
    """Return whether all redactions in a text are tokens of unknown vendors, which may be ids of other programs."""
    from ricordo.text.secrets import BY_PREFIX

    return set(_KIND.findall(clean)) <= {BY_PREFIX}


_NAMES_ID = re.compile(r"(?:^|[_-])(?:ids?|uid|ref|sha|hash|digest|etag|cursor|name|path|url)$|[a-z]Ids?$")
"""Keys of attributes whose values are ids."""
_KIND = re.compile(r"\[redacted: ([^\]]+)\]")


def short_name(text: str | None, *, name: str, rules: TextRules = SCREENED) -> str | None:
    """Return a label, such as a speaker, a tag or a session id, stripped: 1 to 500 characters, or None.

    A credential is replaced as in a text.

    Raises:
        InvalidError: the label is blank, too long, not a str, or holds a credential that the policy refuses.
    """
    if text is None:
        return None
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_NAME_CHARS:
        raise InvalidError(f"{name} must be 1 to {MAX_NAME_CHARS} characters of text")
    return _label(text.strip(), name, rules)


@lru_cache(maxsize=1_024)  # a conversation repeats its speakers and its session in every message
def _label(text: str, name: str, rules: TextRules) -> str:
    check_encodable(text, name=name)
    clean = _of_identifier if name == "session" else without_secrets
    return clean(text, name=name, rules=rules)


_MAX_CHARS = 100_000
_MAX_TAGS = 100


def checked_attributes(given: Json | None, *, rules: TextRules = SCREENED) -> Json:
    """Return a copy of a JSON object, with credentials in its keys and values replaced as in a text.

    Raises:
        InvalidError: the value is not a JSON object, contains NaN or infinity, has more than 100,000 characters, or
            holds a credential that the policy refuses.
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
        raise InvalidError(f"attributes have {len(text):,} characters", hint=f"at most {_MAX_CHARS:,} are allowed")
    check_encodable(text, name="attributes")
    found: dict[str, Any] = json.loads(text)
    if rules.lets_all_in:
        return found
    screened: Json = _screened(found, key="", clean=partial(without_secrets, name="attributes", rules=rules))
    return screened


def screen_of(rules: TextRules) -> Callable[[Any], Any] | None:
    """Return a function that removes credentials and personal data from a JSON value; None if nothing is removed."""
    if rules.lets_all_in:
        return None
    kept = rules if rules.secrets == "keep" else replace(rules, secrets="redact")
    return partial(_screened, key="", clean=partial(without_secrets, name="a value", rules=kept))


def _screened(value: Any, *, key: str, clean: Callable[[str], str]) -> Any:
    """Return a JSON value without credentials. A key can show that its value is one: `{"password": "hunter2"}`."""
    if isinstance(value, Mapping):
        return {clean(name): _screened(each, key=name, clean=clean) for name, each in value.items()}
    if isinstance(value, list):
        return [_screened(each, key=key, clean=clean) for each in value]
    if not isinstance(value, str):
        return value
    lead = f"{key}: " if key else ""
    text = clean(value)
    if text != value and _NAMES_ID.search(key) and _holds_ids_only(text):
        return value
    announced = clean(lead + text)
    return announced[len(lead) :] if announced.startswith(lead) else text


def checked_tags(given: Iterable[str], *, rules: TextRules = SCREENED) -> tuple[str, ...]:
    """Return distinct tags in the order given, from a list or a text with commas. Letter case makes no difference.

    Raises:
        InvalidError: the value is not a list, a tag is blank or too long, or there are more than 100.
    """
    given = [tag for tag in given.split(",") if tag.strip()] if isinstance(given, str) else given
    if not isinstance(given, Iterable):
        raise InvalidError(f"tags: {given!r} is not a list", hint='pass ["work"]')
    checked = (short_name(tag, name="tags", rules=rules) or "" for tag in given)
    found: dict[str, str] = {}
    for tag in checked:
        found.setdefault(tag.casefold(), tag)
    tags = tuple(found.values())
    if len(tags) > _MAX_TAGS:
        raise InvalidError(f"{len(tags)} tags", hint=f"at most {_MAX_TAGS} are allowed")
    return tags


# ---- the gate that every change passes

_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")


_NO_TEXT = NO_TEXT | {"evidence", "sessions", "merged_into", "other", "run_id"}


def gate_of(rules: TextRules) -> Gate:
    """Return a gate that removes credentials from every change, whichever method, interface or model makes it.

    Callers check their arguments earlier, so that errors name the field. The gate is a safety net: it covers new fields
    and new entry points without a check of their own. Secrets that the owner keeps or that are already stored stay.
    """

    def gate(snapshot: Snapshot, change: Change, reason: Reason) -> tuple[Change, Reason]:
        if rules.lets_all_in or reason.origin == "undo":
            return change, reason

        clean = partial(without_secrets, name="a field", rules=rules)
        # Of memories, those that are kept are known only below, so none is refused here.
        mild = partial(clean, rules=replace(rules, secrets="redact")) if rules.secrets == "refuse" else clean
        screened = change
        for each in fields(change):
            given = getattr(change, each.name)
            # A bare string in a change is the id of an object, not text.
            is_stored = bool(given) and each.name not in NO_TEXT and is_dataclass(given[0])
            screen = mild if each.name in ("add", "put") else clean
            if is_stored and (done := _cleaned(given, screen)) is not given:
                screened = replace(screened, **{each.name: done})
        if screened is not change:
            screened = _with_kept(snapshot, change, screened, clean)
        return screened, replace(reason, reason=clean(reason.reason))

    return gate


def holds_credentials(given: Sequence[Any], *, rules: TextRules) -> bool:
    """Return whether any text in the values contains a credential that the rules do not allow."""
    if rules.lets_all_in:
        return False
    rules = rules if rules.secrets == "keep" else replace(rules, secrets="redact")
    clean = partial(without_secrets, name="a field", rules=rules)
    return any(_cleaned(each, clean) is not each for each in given)


def _cleaned(value: Any, clean: Callable[[str], str]) -> Any:
    """Return a value with every text in it cleaned, or the same object if nothing changes."""
    if not value or isinstance(value, int | float | datetime):  # most fields of a memory
        return value
    if isinstance(value, str):
        text = clean(value)
        return value if text == value else text
    if isinstance(value, list | tuple):
        new = [_cleaned(each, clean) for each in value]
        is_same = all(one is other for one, other in zip(new, value, strict=True))
        return value if is_same else type(value)(new)
    if isinstance(value, Mapping):
        done = _screened(value, key="", clean=clean)
        return value if done == value else done
    if not is_dataclass(value) or isinstance(value, type):
        return value
    parts = ((name, getattr(value, name)) for name in _text_fields(type(value)))
    changed = {name: new for name, part in parts if (new := _cleaned(part, clean)) is not part}
    return replace(value, **changed) if changed else value


@cache
def _text_fields(cls: type) -> tuple[str, ...]:
    """Return the fields of a dataclass that may contain text."""
    return tuple(each.name for each in fields(cls) if each.name not in _NO_TEXT and each.init)


def _with_kept(snapshot: Snapshot, change: Change, screened: Change, clean: Callable[[str], str]) -> Change:
    """Return a screened change with the credentials that the owner keeps or that are already stored."""
    former = {edge.source: edge.target for edge in change.link if edge.type == "supersedes"}
    stored: set[str] = set()
    for node in (*change.add, *change.put):
        scope = Scope.of(node.owner, node.chat)
        for id in {node.id, former.get(node.id, node.id)}:
            stored.update(strings_of(snapshot.nodes.get(scope, id)))

    def kept(text: str) -> str:
        return text if text in stored else clean(text)

    def nodes(given: tuple[Node, ...]) -> tuple[Node, ...]:
        return tuple(node if node.id in change.kept_secrets else _cleaned(node, kept) for node in given)

    return replace(screened, add=nodes(change.add), put=nodes(change.put), kept_secrets=())


Span = tuple[str, int, int, int]
"""A part of a message to leave out of answers: node id, start, length, and the number of the suppressed sentence."""

# Origins that are not a person's own words: derived from messages, or imported from elsewhere.
_SECOND_HAND = frozenset(("extraction", "consolidation", "import", "tool_result", "web"))


# Attributes that say which document a passage is of: they stay while some of its text does.
_NAMES_DOCUMENT = frozenset(("document", "title", "source"))


class Screened(NamedTuple):  # not a dataclass: an import makes one for each message, and a tuple is made faster
    """A message as it may be stored, or None; the text to learn from; and the suppressed sentences it states again."""

    node: Node | None
    heard: str
    spans: tuple[Span, ...] = ()
    restated: tuple[int, ...] = ()


def all_screened(snapshot: Snapshot, nodes: Sequence[Node]) -> list[Screened]:
    """Screen the messages of one caller, in order. Usually nothing is suppressed, and no message is read."""
    space = snapshot.space(nodes[0].owner, nodes[0].chat) if nodes else None
    if space is None or not snapshot.suppression.withholds(space):
        return [Screened(node, node.content) for node in nodes]
    return [screened(snapshot, node) for node in nodes]


def screened(snapshot: Snapshot, node: Node, *, unaware_since: int | None = None) -> Screened:
    """Return a message without text erased before, and with spans over text forgotten before.

    Args:
        unaware_since: it was said by somebody who did not know what was erased from this time (Unix milliseconds) on.
    """
    space = snapshot.space(node.owner, node.chat)
    if space is None:
        return Screened(node=node, heard=node.content)
    at = _earliest(to_ms(node.event_time), unaware_since)
    if snapshot.suppression.is_erased(space, node, said_at=at if node.is_item else None):
        return Screened(node=None, heard="")
    if node.is_title_page:
        node = _without_erased_headings(snapshot, space, node)
        return Screened(node=node, heard=node.content)
    is_said_now = is_persons_word(node.role, node.origin) and node.origin != "import"
    said_at = at if is_said_now or (node.is_item and node.origin != "import") else None
    node = _without_erased(snapshot, space, node, said_at=said_at)
    text = node.content
    voices = possible_voices(snapshot, node)
    found = snapshot.suppression.matches(space, text, session=node.session, said_at=said_at, voices=voices)
    if erased := [each.sentence for each in found if each.is_erased]:
        text = values.without(text, [(each.start, len(each.text)) for each in erased])
        if not text:
            return Screened(node=None, heard="")
        found = snapshot.suppression.matches(space, text, session=node.session, said_at=said_at, voices=voices)
    pieces = [(each.sentence.start, len(each.sentence.text), each.withheld) for each in found]
    heard = values.without(text, [piece[:2] for piece in pieces]) if pieces else text
    return Screened(
        node=node if text == node.content else replace(node, content=text),
        heard=heard,
        spans=tuple((node.id, *piece) for piece in pieces),
        restated=()
        if not is_said_now or not heard
        else tuple(snapshot.suppression.said_anew(space, heard, voices=voices)),
    )


def _earliest(at: int, other: int | None) -> int:
    return at if other is None else min(at, other)


def without_erased(snapshot: Snapshot, node: Node, *, unaware_since: int | None) -> Node | None:
    """Return a memory of another device without text erased here; None if nothing is left.

    Args:
        unaware_since: as for `screened`.
    """
    if node.type == "episodic":
        return screened(snapshot, node, unaware_since=unaware_since).node
    space = snapshot.space(node.owner, node.chat)
    if space is None:
        return node
    is_stated = node.origin not in _SECOND_HAND
    said_at = _earliest(to_ms(node.created_at), unaware_since) if is_stated else None
    voices = possible_voices(snapshot, node)
    found = snapshot.suppression.matches(space, node.content, session=node.session, said_at=said_at, voices=voices)
    return (
        None
        if any(each.is_erased for each in found) or snapshot.suppression.is_erased(space, node, said_at=None)
        else node
    )


def _without_erased_headings(snapshot: Snapshot, space: int, page: Node) -> Node:
    """Return a title page without erased text below the title. The title says where the passages are from."""
    title = str(page.attributes["title"])
    outline = page.content.removeprefix(title)
    found = snapshot.suppression.matches(space, outline, session=page.session, said_at=None)
    erased = [(each.sentence.start, len(each.sentence.text)) for each in found if each.is_erased]
    return replace(page, content=f"{title}\n{values.without(outline, erased)}".strip()) if erased else page


def _without_erased(snapshot: Snapshot, space: int, node: Node, *, said_at: int | None) -> Node:
    """Return a message without erased text in its attributes. They are given with it, so they are as old as it is."""
    named = _NAMES_DOCUMENT if (node.session or "").startswith(DOCUMENT) else frozenset[str]()
    open_ = {name: value for name, value in (node.attributes or {}).items() if name not in named}
    said = dict.fromkeys(strings_of(open_))
    voices = possible_voices(snapshot, node) if said else ()
    matches = (
        snapshot.suppression.matches(space, text, session=node.session, said_at=said_at, voices=voices) for text in said
    )
    parts = [each.sentence.text.strip() for found in matches for each in found if each.is_erased]
    kept = {name: value for name, value in node.attributes.items() if name in named}
    return replace(node, attributes={**kept, **values.without_parts(open_, parts)}) if parts else node


def may_learn(snapshot: Snapshot, fact: Node) -> bool:
    """Return whether a fact may be stored: a forgotten one may be stated again by a person, but not derived again."""
    if fact.origin not in _SECOND_HAND:
        return True
    space = snapshot.space(fact.owner, fact.chat)
    if space is None or not snapshot.suppression.withholds(space):
        return True
    voices = possible_voices(snapshot, fact)
    found = snapshot.suppression.matches(space, fact.content, session=fact.session, said_at=None, voices=voices)
    return not (found or snapshot.suppression.is_erased(space, fact, said_at=None))


def said_again(snapshot: Snapshot, facts: Sequence[Node]) -> tuple[int, ...]:
    """Return the numbers of suppressed sentences that the facts state again."""
    found: dict[int, None] = {}
    for fact in facts:
        space = snapshot.space(fact.owner, fact.chat)
        if space is not None and snapshot.suppression.withholds(space):
            voices = possible_voices(snapshot, fact)
            found.update(dict.fromkeys(snapshot.suppression.said_anew(space, fact.content, voices=voices)))
    return tuple(found)
