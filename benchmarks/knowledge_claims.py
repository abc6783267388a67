"""Measure what becomes of a language model's claims about conversations: true ones, and made-up ones that cite evidence
which looks right.

    python -m benchmarks.knowledge_claims [FILE.jsonl] [--verifier none|exact|gullible] [--out FILE.json] [--show]

Each case is a conversation, a claim and the messages the model cites. A scripted model proposes the claim; the memory
decides. The answers of the verifier are scripted, too: `exact` knows what is true, `none` gives no usable answer, and
`gullible` confirms everything. A claim is "live" if the memory answers with it without review, "held" if it waits for
review, else "refused".
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ricordo import Memory, Scope, Settings
from ricordo.language import ScriptedModel
from ricordo.ports import Turn

DATA = Path(__file__).parent / "data" / "knowledge" / "claims.jsonl"
VERIFIERS = ("none", "exact", "gullible")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a claim, and whether it had to be verified."""

    case: Mapping[str, Any]
    what: str
    was_asked: bool


def read(path: Path) -> list[dict[str, Any]]:
    """Return the cases of a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


async def outcomes(cases: Sequence[Mapping[str, Any]], *, verifier: str) -> list[Outcome]:
    """Return what becomes of each claim."""
    found: list[Outcome] = []
    with tempfile.TemporaryDirectory() as folder:
        script = _Script(verifier)
        async with Memory.open(
            Path(folder) / "claims.db",
            scope=Scope(owner="opener"),
            embedder="hashing",
            model=ScriptedModel(script.answer),
            settings=Settings(durability="process"),
        ) as memory:
            for case in cases:
                script.case, script.was_asked = case, False
                mine = memory.scoped(Scope(owner=case["id"]))
                found.append(Outcome(case=case, what=await _learn(mine, case), was_asked=script.was_asked))
    return found


class _Script:
    """The model: it proposes the claim of the present case, and says of it what the verifier would."""

    def __init__(self, verifier: str) -> None:
        self._verifier = verifier
        self.case: Mapping[str, Any] = {}
        self.was_asked = False

    def answer(self, turns: Sequence[Turn], schema: Mapping[str, Any]) -> object:
        if schema["title"] == "Proposal":
            return {"facts": [self._fact()], "entities": [], "relations": [], "causes": [], "summary": ""}
        if schema["title"] != "Checks":
            return {}
        self.was_asked = True
        says = {"none": "", "gullible": "stated", "exact": "stated" if self.case["kind"] == "true" else "otherwise"}
        return {"checks": [{"claim": "c1", "is": says[self._verifier], "confidence": 0.95}]}

    def _fact(self) -> dict[str, Any]:
        evidence = [f"e{place + 1}" for place in self.case["evidence"]]
        plain = {"kind": "fact", "category": "knowledge", "about": [], "slot": "", "said": True, "confidence": 0.95}
        return {"text": self.case["claim"], "evidence": evidence, **plain}


async def _learn(memory: Memory, case: Mapping[str, Any]) -> str:
    user = case.get("user", case["messages"][0]["speaker"])
    for message in case["messages"]:
        speaker = None if message["speaker"] == user else message["speaker"]
        await memory.add(message["text"], session="s", speaker=speaker)
    await memory.consolidate("s")
    if any(node.content == case["claim"] for node in (await memory.list(type="semantic")).nodes):
        return "live"
    return "held" if await memory.review(kind="quarantine") else "refused"


def report(found: Sequence[Outcome]) -> dict[str, Any]:
    """Return the figures by kind, and how many true and made-up claims are live."""
    kinds = dict.fromkeys(each.case["kind"] for each in found)
    by_kind = {
        kind: dict(Counter(each.what for each in found if each.case["kind"] == kind).most_common()) for kind in kinds
    }
    true = [each for each in found if each.case["kind"] == "true"]
    made_up = [each for each in found if each.case["kind"] != "true"]
    return {
        "true": len(true),
        "true live": sum(each.what == "live" for each in true),
        "made up": len(made_up),
        "made up live": sum(each.what == "live" for each in made_up),
        "verified": sum(each.was_asked for each in found),
        "kinds": by_kind,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, default=DATA)
    parser.add_argument("--verifier", choices=VERIFIERS, help="default: each in turn")
    parser.add_argument("--out", type=Path, help="write the figures here, too")
    parser.add_argument("--show", action="store_true", help="list the claims that are judged wrongly")
    given = parser.parse_args()
    cases, figures = read(given.file), dict[str, Any]()
    for verifier in [given.verifier] if given.verifier else VERIFIERS:
        found = asyncio.run(outcomes(cases, verifier=verifier))
        figures[verifier] = report(found)
        print(verifier, json.dumps(figures[verifier], ensure_ascii=False))
        for each in found if given.show else ():
            if (each.what == "live") != (each.case["kind"] == "true"):
                print(f"  {each.case['id']} {each.case['kind']}: {each.what}: {each.case['claim']}")
    if given.out:
        given.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
