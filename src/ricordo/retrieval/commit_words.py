"""The words of commits: what a log shows of the memories that a commit touched, as they were then."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain

from ricordo.model import Commit, Node, RowId, Scope
from ricordo.retrieval.hits import as_shown
from ricordo.rights import Holder, allows
from ricordo.storage import Snapshot
from ricordo.storage.authors import is_proposed, method_in, proposal_of, with_proposers
from ricordo.storage.groups import Ledger
from ricordo.storage.values import Image, voices_in
from ricordo.text.names import relation_told
from ricordo.text.sentences import sentences, shortened

_WORDS_CHARS = 160
_TOUCHED_MOST = 100
_MANY = 20
_NAMED = ("relations", "entities", "sessions")
"""The tables whose rows name a change without memories, the most telling first."""
_HELD = "quarantined"


def in_words(snapshot: Snapshot, scope: Scope, commits: Sequence[Commit]) -> list[Commit]:
    """Return commits with excerpts of what each commit touched, as far as the caller may see it.

    An excerpt names a decision, a memory or, if the commit touched none, a relation, a person or thing, or a
    conversation. Texts are those right after the commit or, if it removed the memory, right before.
    """
    log = _Log(snapshot, scope)
    log.read(commits)
    return [
        replace(with_proposers(snapshot, each), words=log.words(each.seq), is_repeat=log.is_repeat(each))
        for each in commits
    ]


def image_at(ledger: Ledger, row: RowId, seq: int) -> Image | None:
    """Return a row as it was right after a commit, or else right before it, or else as it is now."""
    return ledger.state(row, seq) or ledger.state(row, seq - 1) or ledger.current(row)


def _row(key: int) -> RowId:
    return RowId(table="nodes", key=(key,))


class _Log:
    """The rows that some commits touched, and the nodes among them that the caller may see."""

    def __init__(self, snapshot: Snapshot, scope: Scope) -> None:
        self._snapshot = snapshot
        self._scope = scope
        self._spaces = frozenset(snapshot.visible(scope))
        self._shows_held = allows("review.quarantined_text", Holder(scope.trust))
        self._ledger = snapshot.history.ledger()
        self._rows: dict[int, list[RowId]] = {}
        self._nodes: dict[int, Node] = {}

    def read(self, commits: Sequence[Commit]) -> None:
        self._rows = {commit.seq: self._ledger.touched(commit.seq) for commit in commits}
        self._read_nodes({key for commit in commits for key in self._keys(commit.seq)})

    def _read_nodes(self, keys: Iterable[int]) -> None:
        self._nodes |= as_shown(self._snapshot, self._snapshot.nodes.by_key(self._scope, keys))

    def _keys(self, seq: int) -> list[int]:
        """Return the keys of the nodes that a commit touched, the newest first."""
        keys = [int(row.key[0]) for row in self._rows[seq] if row.table == "nodes"][:_TOUCHED_MOST]
        return sorted(keys, reverse=True)

    def words(self, seq: int) -> str:
        if told := self._decision(seq) or self._proposed(seq):
            return told
        if keys := self._keys(seq):
            shown = [key for key in keys if self._may_show(key, seq)]
            touched = sum(row.table == "nodes" for row in self._rows[seq]) if len(shown) == len(keys) else len(shown)
            more = f" and {touched - 1:,} more" if touched > 1 else ""
            text = next(filter(None, (self._text(key, seq) for key in shown)), "")
            return f"{touched:,} memories, such as {text}" if text and touched > _MANY else text and text + more
        named = [
            sorted((row for row in self._rows[seq] if row.table == name), key=lambda row: row.key) for name in _NAMED
        ]
        return next(filter(None, (self._name(row, seq) for row in chain(*named))), "")

    def is_repeat(self, commit: Commit) -> bool:
        """Return whether a commit stated a memory that was known before, and nothing else."""
        keys = self._keys(commit.seq) if commit.origin == "remember" else []
        return bool(keys) and self._ledger.state(_row(keys[0]), commit.seq - 1) is not None

    def _may_show(self, key: int, seq: int) -> bool:
        """Return whether the caller sees a memory that a commit touched, or saw it if it was removed since."""
        if (node := self._nodes.get(key)) is not None:
            return node.closed_reason != _HELD
        image = None if self._ledger.current(_row(key)) else image_at(self._ledger, _row(key), seq)
        return image is not None and image["space"] in self._spaces and image["closed_reason"] != _HELD

    def _text(self, key: int, seq: int) -> str:
        """Return the beginning of a memory's text at a commit, without forgotten sentences."""
        node, image = self._nodes.get(key), image_at(self._ledger, _row(key), seq)
        now = self._ledger.current(_row(key))
        if node is not None and (image is None or now is None or image["content"] == now["content"]):
            return _beginning(node.content)
        return "" if image is None else _beginning(self._former(image))

    def _former(self, image: Image) -> str:
        """Return a former text without the sentences that were forgotten since, or erased. A fact that was itself
        forgotten is shown, as in the archive.
        """
        text = str(image["content"])
        found = self._snapshot.suppression.matches(
            image["space"], text, session=None, said_at=None, voices=voices_in(image)
        )
        is_fact = image["type"] != "episodic" and len(found) == len([*sentences(text)])
        if is_fact and not any(each.is_erased for each in found):
            return text
        for each in found:
            text = text.replace(each.sentence.text, " ")
        return text

    def _decision(self, seq: int) -> str:
        """Return the decision on a review that a commit made, and the number of others; "" if it made none."""
        images = ((row, self._ledger.state(row, seq)) for row in self._rows[seq] if row.table == "reviews")
        decided = [
            image
            for row, image in images
            if image is not None and image["decision"] and image["space"] in self._spaces
            if not (self._ledger.state(row, seq - 1) or {}).get("decision")
        ]
        if not decided:
            return ""
        more = f" and {len(decided) - 1:,} more" if len(decided) > 1 else ""
        first = decided[0]
        if is_proposed(first):
            by = "" if first["decision"] == "approve" else self._proposer(first)
            return f"{first['decision']}: {self._asked(first, seq)}{more}{by}"
        newer, older = (self._text_of(first[name], seq) for name in ("newer", "older"))
        before = f" (before: {older})" if older else ""
        return f"{first['decision']}: {newer}{before}{more}"

    def _proposed(self, seq: int) -> str:
        """Return what a commit proposed, and the number of other proposals; "" if it proposed nothing."""
        rows = [row for row in self._rows[seq] if row.table == "reviews" and self._ledger.state(row, seq - 1) is None]
        images = filter(None, (self._ledger.state(row, seq) for row in rows))
        made = [each for each in images if is_proposed(each) and each["space"] in self._spaces]
        more = f" and {len(made) - 1:,} more" if len(made) > 1 else ""
        return f"{'' if method_in(made[0]) else 'proposed: '}{self._asked(made[0], seq)}{more}" if made else ""

    def _proposer(self, review: Image) -> str:
        found = self._snapshot.history.recorded([review["newer"]]).get(review["newer"])
        return f", proposed by {found.actor}" if found is not None and found.actor else ""

    def _asked(self, review: Image, seq: int) -> str:
        """Return what a proposal would add or change. Its own words are for callers that may read quarantined text."""
        held, method = int(review["newer"]), method_in(review)
        if held not in self._nodes:
            self._read_nodes([held])
        said = self._text(held, seq) if self._shows_held else ""
        if not method:
            return said or "a new fact"
        asked = proposal_of(self._snapshot, held)
        target = self._snapshot.nodes.get(self._scope, str(asked.get("id", "")))
        if target is not None and target.key not in self._nodes:
            self._read_nodes([target.key])
        about = f" “{self._text(target.key, seq)}”" if target is not None else " a memory that is gone"
        words = said.removeprefix(method).removeprefix(": ")
        fields = [] if words else [name for name, value in asked.get("arguments", {}).items() if value is not None]
        fields = [] if method != "update" else fields
        change = f" to “{words}”" if words and method != "forget" else f" ({words or ', '.join(fields)})"
        return f"{method}{about}{change if words or fields else ''}"

    def _text_of(self, key: int | None, seq: int) -> str:
        """Return the text of one node of a review; "" if there is none."""
        if key is None:
            return ""
        if key not in self._nodes:
            self._read_nodes([key])
        return self._text(key, seq) if self._may_show(key, seq) else "a memory in quarantine"

    def _name(self, row: RowId, seq: int) -> str:
        """Return the name of a relation, entity or conversation that a commit touched; "" if the caller sees none."""
        image = image_at(self._ledger, row, seq)
        if image is None:
            return ""
        if row.table == "sessions":
            return str(image["session_id"]) if image["space"] in self._spaces else ""
        if row.table == "entities":
            return self._entity_name(image)
        target, source = (
            self._entity_name(self._ledger.current(RowId(table="entities", key=(image[end],))) if image[end] else None)
            for end in ("target", "source")
        )
        if not target or (image["source"] and not source):
            return ""
        return relation_told(target, image["predicate"], source) if source else f"{target}: {image['predicate']}"

    def _entity_name(self, image: Image | None) -> str:
        entity = None if image is None else self._snapshot.entities.by_id(self._scope, str(image["id"]))
        return "" if entity is None else entity.name


def _beginning(text: str) -> str:
    lines = (" ".join(line.split()) for line in text.splitlines())
    return shortened("\n".join(filter(None, lines)), _WORDS_CHARS)
