"""The results of both suites as one value; `python -m tests.adversaries.tables` writes it beside the other results."""

from __future__ import annotations

import json
import logging
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

_ATTACKS = ("planted fact", "other user", "stuffed text", "instruction", "correction", "tag")
PUBLISHED: dict[str, Any] = {
    "source": "the descriptions of agent-memory-integrity 0.6.3 and agent-memory-guard 0.3.3 on PyPI",
    "recall: times of five that an attack came back": {
        "mem0 2.0.20": dict(zip(_ATTACKS, (5, 0, 4, 5, 5, 5), strict=True)),
        "LangGraph SqliteStore 3.1.1": dict(zip(_ATTACKS, (5, 0, 5, 5, 5, 5), strict=True)),
        "Letta 0.16.8": dict(zip(_ATTACKS, (5, 0, 4, 5, 5, None), strict=True)),
    },
    "at rest: edits of those scored that were noticed": {
        "LangGraph SqliteSaver 3.1.1": [0, 9],
        "OpenAI Agents SDK SQLiteSession 0.20.0": [0, 9],
        "Letta 0.16.8": [0, 8],
        "mem0 2.0.20": [0, 7],
        "langgraph-ledger 0.3.0": [7, 9],
        "Atelya Attest 0.1.1, anchored": [8, 8],
    },
    "poisoned": {"agent-memory-guard, hardened": "A 93.9", "agent-memory-guard, strict": "D 71.4", "a dict": "F 0.0"},
}
"""What the suites' authors measured for others."""

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "adversaries.json"


def at_rest() -> dict[str, dict[str, Any]]:
    """Return for each kind of store and each attack on its files whether it was noticed, and how."""
    from agmi.attacks.at_rest import AT_REST_ATTACKS_WITH_SNAPSHOT

    from tests.adversaries.at_rest import FileStore, FolderStore

    found: dict[str, dict[str, Any]] = {}
    for store in (FileStore, FolderStore):
        results = [attack().run(store()) for attack in AT_REST_ATTACKS_WITH_SNAPSHOT]
        assert not any(each.error or each.guard for each in results), results
        found[store.name] = {each.attack: {"noticed": each.detected, "detail": each.detail} for each in results}
    return found


def recall(*attacks: str, embedder: str | None = "default", trust: str = "user") -> dict[str, Any]:
    """Return for each attack and channel in how many of five tries the text came back.

    Args:
        trust: that of the connection that everything is written through.
    """
    from agmi.attacks.memory_specific import ALL_MEMORY_ATTACKS

    from tests.adversaries.recall import Recall

    found = {}
    for attack in ALL_MEMORY_ATTACKS:
        if attacks and attack.name not in attacks:
            continue
        adapter = Recall(embedder, trust)
        result = attack().run(adapter)
        adapter.close()
        assert not result.error, result
        channels = result.channels or {"cross-user": result.fixtures}
        found[attack.name] = {channel: sum(map(bool, outcomes)) for channel, outcomes in channels.items()}
    return found


def poisoned(trust: str | None = None) -> dict[str, Any]:
    """Return the grade, and the number of correctly handled attacks and harmless notes.

    Args:
        trust: that of a connection that writes everything in its own name; None: each source says what it is.
    """
    from agent_memory_guard.bench.harness import run_suite
    from agent_memory_guard.bench.scoring import score_report

    from tests.adversaries.poison import Poisoned

    opened: list[Poisoned] = []

    def fresh() -> Poisoned:
        opened.append(Poisoned(trust))
        return opened[-1]

    report = run_suite(fresh)
    for each in opened:
        each.close()
    card = score_report(report)
    return {
        "grade": card.grade.value,
        "score": card.score,
        "attacks": card.malicious_total,
        "held": card.defended_total,
        "harmless": card.benign_total,
        "harmless_kept": card.benign_total - card.false_positives,
        "came_back": [run.scenario_id for run in report.runs if not run.passed],
    }


def main() -> None:
    logging.disable(logging.WARNING)
    suites = {name: version(name) for name in ("agent-memory-integrity", "agent-memory-guard")}
    found = {
        "suites": suites,
        "at_rest": at_rest(),
        "recall": recall(),
        "recall through a connection": {trust: recall(trust=trust) for trust in ("agent",)},
        "poisoned": poisoned(),
        "poisoned through a connection": {trust: poisoned(trust) for trust in ("agent", "user")},
        "published": PUBLISHED,
    }
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
