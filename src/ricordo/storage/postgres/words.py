"""What Ricordo's own analyzer derives from the text of a node: index terms, features and statement lines."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ricordo.storage.database.connection import besides_terms, stored_terms
from ricordo.storage.database.statements import Statements
from ricordo.text.analyzer import index_terms, raw_words
from ricordo.text.languages import analyzer_version
from ricordo.text.passages import traits_of
from ricordo.text.statement import statement_line

_ANALYZER_KEY = "analyzer"
_ANALYZED_KEY = "analyzed"
"""The version of the analyzer and the last memory, while everything is derived again."""
_AT_ONCE = 500
_STEP = 200
"""How many memories are derived again in one transaction, for which other writers wait."""


def reindex(snapshot: Statements, nodes: Sequence[int]) -> None:
    """Derive everything for some nodes again. Only inside a write."""
    for start in range(0, len(nodes), _AT_ONCE):
        rows = snapshot.rows("words_sources", {"keys": json.dumps(list(nodes[start : start + _AT_ONCE]))})
        words, traits, slots = [], [], []
        for key, space, shelf, content, tags, speaker, role, session, event_time, is_live in rows:
            raw = raw_words(content)
            terms, besides = index_terms(content, raw), besides_terms(tags, speaker)
            line = statement_line(content) if shelf == "k" else ""
            words.append((key, space, shelf, is_live, line, stored_terms(terms + besides, f"{space}{shelf}")))
            features = traits_of(content, terms, besides, raw, role=role)
            traits.append((key, space, session or 0, event_time, speaker, features))
            if is_live and line:
                slots.append((key, space, line))
        snapshot.rows("slots_drop", {"keys": json.dumps([row[0] for row in rows])})
        snapshot.many("words_put", words)
        snapshot.many("traits_put", traits)
        snapshot.many("slots_put", slots)


def analyze_again(snapshot: Statements) -> bool:
    """Derive the next memories again if another version of the analyzer derived them. Only inside a write.

    Returns:
        Whether more are left. A few at a time, so that other writers need not wait for a large store.
    """
    version = analyzer_version()
    if snapshot.meta(_ANALYZER_KEY) == version:
        return False
    by, _, last = (snapshot.meta(_ANALYZED_KEY) or "").rpartition(" ")
    after = {"after": int(last) if by == version else 0, "most": _STEP}
    keys = [key for (key,) in snapshot.rows("nodes_following", after)]
    reindex(snapshot, keys)
    if len(keys) == _STEP:
        snapshot.rows("meta_put", {"name": _ANALYZED_KEY, "value": f"{version} {keys[-1]}"})
        return True
    snapshot.rows("turns_changed")
    snapshot.rows("meta_put", {"name": _ANALYZER_KEY, "value": version})
    return False


def words_off(snapshot: Statements) -> int:
    """Return how many nodes have index words that differ from their text. For `doctor`: reads the whole store."""
    keys = [key for (key,) in snapshot.rows("nodes_all")]
    off = int(snapshot.rows("words_stray")[0][0])
    for start in range(0, len(keys), _AT_ONCE):
        listed = {"keys": json.dumps(keys[start : start + _AT_ONCE])}
        held = {row[0]: row[1:] for row in snapshot.rows("words_held", listed)}
        for key, space, shelf, content, tags, speaker, role, session, event_time, is_live in snapshot.rows(
            "words_sources", listed
        ):
            raw = raw_words(content)
            terms, besides = index_terms(content, raw), besides_terms(tags, speaker)
            line = statement_line(content) if shelf == "k" else ""
            features = traits_of(content, terms, besides, raw, role=role)
            wanted = (
                space,
                shelf,
                is_live,
                line if is_live else None,
                stored_terms(terms + besides, f"{space}{shelf}").rstrip(" "),
                session or 0,
                event_time,
                speaker,
                features,
            )
            off += held.get(key) != wanted
    return off
