"""The results of both suites as one value; `python -m tests.adversaries.tables` writes it beside the other results."""

from __future__ import annotations

import json
import logging
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

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


def recall(*attacks: str, embedder: str | None = "default") -> dict[str, Any]:
    """Return for each attack and channel in how many of five tries the text came back."""
    from agmi.attacks.memory_specific import ALL_MEMORY_ATTACKS

    from tests.adversaries.recall import Recall

    found = {}
    for attack in ALL_MEMORY_ATTACKS:
        if attacks and attack.name not in attacks:
            continue
        adapter = Recall(embedder)
        result = attack().run(adapter)
        adapter.close()
        assert not result.error, result
        channels = result.channels or {"cross-user": result.fixtures}
        found[attack.name] = {channel: sum(map(bool, outcomes)) for channel, outcomes in channels.items()}
    return found


def poisoned() -> dict[str, Any]:
    """Return the grade, and the number of correctly handled attacks and harmless notes."""
    from agent_memory_guard.bench.harness import run_suite
    from agent_memory_guard.bench.scoring import score_report

    from tests.adversaries.poison import Poisoned

    opened: list[Poisoned] = []

    def fresh() -> Poisoned:
        opened.append(Poisoned())
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
    found = {"suites": suites, "at_rest": at_rest(), "recall": recall(), "poisoned": poisoned()}
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
