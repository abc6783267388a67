"""Measure knowledge that changes: pairs of statements, and small stories, as people write them.

    python benchmarks/knowledge.py [FILE…] [--embedder default none] [--out FILE.json] [--show]

A pair is two statements of one person, three weeks apart, and a question. Reported by class and language: how often the
statement that answers stands first, how often an outdated one was closed, closed or in review, and how often a true one
was closed wrongly. A crowd is a dozen pairs of one language told by one person, of which every second changes: reported
is how often the answer stands first, for what has changed and for what has not. A life is a list of facts that all
hold: reported is how many were taken to make another one out of date. A year is what one person told in a year, with
the facts that each one replaces, and questions: reported is what was closed or listed rightly and wrongly, and how
often the answer stands first, for what has changed and for what has not. A story is a list of steps (facts and
messages of several people) with checks on the end of it.

`benchmarks/data/knowledge/README.md` describes the fields. Only the public API is used, without a language model.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from ricordo import Memory, Node, NotFoundError, Scope, Settings

FAST = Settings(durability="process")
DATA = Path(__file__).parent / "data/knowledge"
START = datetime(2026, 9, 7, 10, tzinfo=UTC)
APART = timedelta(days=21)
CROWD = 12

Row = Mapping[str, Any]


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.at = START

    def now(self) -> int:
        """Return the time in Unix milliseconds."""
        return int(self.at.timestamp() * 1_000)


class Outcome(NamedTuple):
    """What became of a pair: whether its answer stands first (None where either may), and the older statement."""

    row: Row
    first: bool | None
    closed: bool
    in_review: bool

    @property
    def is_wrong(self) -> bool:
        missed = self.row["old"] == "closed" and not (self.closed or self.in_review)
        return self.first is False or missed or (self.row["old"] == "live" and self.closed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, default=sorted(DATA.glob("*.jsonl")))
    parser.add_argument("--embedder", nargs="+", default=["default", "none"])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--show", action="store_true", help="print each case that went wrong")
    options = parser.parse_args()
    rows = [json.loads(line) for file in options.files for line in file.read_text(encoding="utf-8").splitlines()]
    report: dict[str, Any] = {}
    for name in options.embedder:
        embedder = None if name == "none" else name
        outcomes = asyncio.run(run_pairs([row for row in rows if "first" in row], embedder))
        stories = asyncio.run(run_stories([row for row in rows if "steps" in row], embedder))
        lives = asyncio.run(
            run_lives([row for row in rows if isinstance(row.get("facts", [{}])[0], str)], show=options.show)
        )
        years = [row for row in rows if "questions" in row]
        nightly = asyncio.run(run_pairs([row for row in rows if "first" in row], embedder, upkeep=True))
        report[name] = {
            "pairs": pair_figures(outcomes),
            "pairs_after_upkeep": pair_figures(nightly),
            "crowds": asyncio.run(run_crowds([row for row in rows if "first" in row], embedder)),
            "lives": lives,
            "years": asyncio.run(run_years(years, embedder, upkeep=False, show=options.show)),
            "years_with_upkeep": asyncio.run(run_years(years, embedder, upkeep=True, show=options.show)),
            "stories": story_figures(stories),
        }
        if options.show:
            show(outcomes, stories)
    print(json.dumps(report, indent=1))
    if options.out:
        options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


async def run_pairs(rows: Sequence[Row], embedder: str | None, *, upkeep: bool = False) -> list[Outcome]:
    """Remember both statements of each pair, every pair for an owner of its own, and ask its question.

    Args:
        upkeep: run upkeep before asking, as every night.
    """
    clock = Clock()
    async with Memory.open(":memory:", embedder=embedder, settings=FAST, clock=clock) as memory:
        before = [await _of(memory, row).remember(row["first"]) for row in rows]
        clock.at += APART
        after = [await _of(memory, row).remember(row["second"]) for row in rows]
        await memory.settle()
        clock.at += timedelta(hours=1)
        if upkeep:
            await memory.maintain(all_owners=True)
        return [await _outcome(_of(memory, row), row, *pair) for row, *pair in zip(rows, before, after, strict=True)]


def _of(memory: Memory, row: Row) -> Memory:
    return memory.scoped(Scope(owner=row["id"]))


async def _outcome(memory: Memory, row: Row, old: Node, new: Node) -> Outcome:
    found = await memory.search(row["question"], limit=5)
    wanted = {"first": old.id, "second": new.id}.get(row["answer"])
    listed = [review for review in await memory.review() if review.older and review.older.id == old.id]
    return Outcome(
        row, None if wanted is None else found.ids[:1] == [wanted], not (await memory.get(old.id)).is_live, bool(listed)
    )


def pair_figures(outcomes: Iterable[Outcome]) -> dict[str, dict[str, float | int]]:
    """Return the shares for all, by language and by class."""
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for each in outcomes:
        for name in ("all", each.row["language"], each.row["class"]):
            groups[name].append(each)
    return {name: _figures(group) for name, group in groups.items()}


def _figures(group: Sequence[Outcome]) -> dict[str, float | int]:
    outdated = [each for each in group if each.row["old"] == "closed"]
    true = [each for each in group if each.row["old"] == "live"]
    return {
        "pairs": len(group),
        "answer_first": _share(each.first for each in group if each.first is not None),
        "newer_first": _share(each.first for each in outdated if each.first is not None),
        "closed": _share(each.closed for each in outdated),
        "closed_or_in_review": _share(each.closed or each.in_review for each in outdated),
        "closed_wrongly": _share(each.closed for each in true),
        "true_in_review": _share(each.in_review for each in true),
    }


def _share(of: Iterable[bool | None]) -> float:
    values = [bool(each) for each in of]
    return round(sum(values) / len(values), 4) if values else 0.0


async def run_crowds(rows: Sequence[Row], embedder: str | None) -> dict[str, dict[str, float | int]]:
    """Tell a dozen pairs to each owner, the newer statement of every second pair only, and ask all questions."""
    clock = Clock()
    chance = random.Random(7)
    languages: dict[str, list[Row]] = defaultdict(list)
    for row in chance.sample(rows, len(rows)):
        languages[row["language"]].append(row)
    crowds = {
        f"{name} {start}": of[start : start + CROWD]
        for name, of in languages.items()
        for start in range(0, len(of), CROWD)
    }
    first: dict[str, list[bool]] = defaultdict(list)
    async with Memory.open(":memory:", embedder=embedder, settings=FAST, clock=clock) as memory:
        people = {name: memory.scoped(Scope(owner=name)) for name in crowds}
        answers = {
            (name, row["id"]): (await people[name].remember(row["first"])).id
            for name, crowd in crowds.items()
            for row in crowd
        }
        clock.at += APART
        for name, crowd in crowds.items():
            for row in crowd[::2]:
                newer = await people[name].remember(row["second"])
                if row["answer"] == "second":
                    answers[name, row["id"]] = newer.id
        await memory.settle()
        clock.at += timedelta(hours=1)
        kinds = {"first": "older_answers", "second": "newer_answers"}
        for name, crowd in crowds.items():
            for place, row in enumerate(crowd):
                kind = "unchanged" if place % 2 else kinds.get(row["answer"])
                if kind:
                    found = await people[name].search(row["question"], limit=5)
                    first[kind].append(found.ids[:1] == [answers[name, row["id"]]])
    return {kind: {"questions": len(found), "first": _share(found)} for kind, found in first.items()}


async def run_lives(rows: Sequence[Row], *, show: bool = False) -> dict[str, dict[str, int]]:
    """Remember the facts of each life in the order given and in another, and count those said to outdate another."""
    figures: dict[str, dict[str, int]] = defaultdict(lambda: {"facts": 0, "closing": 0, "in_review": 0})
    clock = Clock()
    async with Memory.open(":memory:", embedder=None, settings=FAST, clock=clock) as memory:
        for row, order in product(rows, range(2)):
            life = memory.scoped(Scope(owner=f"{row['id']} {order}"))
            facts = row["facts"] if not order else random.Random(row["id"]).sample(row["facts"], len(row["facts"]))
            for fact in facts:
                clock.at += timedelta(minutes=5)
                told = (await life.remember(fact)).outdates
                if show and told:
                    print(f"{row['id']}: {fact} | {[each.content for each in told]}")
                for name in ("all", row["language"]):
                    figures[name]["facts"] += 1
                    figures[name]["closing"] += any(each.is_closed for each in told)
                    figures[name]["in_review"] += bool(told) and not any(each.is_closed for each in told)
    return dict(figures)


# years


async def run_years(
    rows: Sequence[Row], embedder: str | None, *, upkeep: bool, show: bool = False
) -> dict[str, dict[str, float]]:
    """Tell the facts of each year to an owner of its own, a fortnight apart, and ask the questions at the end.

    Args:
        upkeep: run upkeep after each fact, as every night.
    """
    clock = Clock()
    counts: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    async with Memory.open(":memory:", embedder=embedder, settings=FAST, clock=clock) as memory:
        told: dict[str, list[Node]] = {row["id"]: [] for row in rows}
        for place in range(max((len(row["facts"]) for row in rows), default=0)):
            for row in rows:
                if place < len(row["facts"]):
                    told[row["id"]].append(await _of(memory, row).remember(row["facts"][place]["text"]))
            await memory.settle()
            clock.at += timedelta(hours=1)
            if upkeep:
                await memory.maintain(all_owners=True)
            clock.at += timedelta(days=14)
        for row in rows:
            found = await _year(_of(memory, row), row, [node.id for node in told[row["id"]]], show=show)
            for kind, values in found.items():
                for name in ("all", row["language"]):
                    counts[name][kind] += values
    return {
        name: {"facts": len(kinds["listed_wrongly"])} | {kind: _share(values) for kind, values in kinds.items()}
        for name, kinds in counts.items()
    }


async def _year(memory: Memory, row: Row, ids: Sequence[str], *, show: bool) -> dict[str, list[bool]]:
    """Return what became of a year: of each change, fact and question, whether it came out in the way named."""
    facts, found = row["facts"], defaultdict[str, list[bool]](list)
    replaced = {(new, old) for new, fact in enumerate(facts) for old in fact.get("replaces", ())}
    over = {old for _, old in replaced}
    listed = set[tuple[int, int]]()
    for review in await memory.review(limit=500):
        if (
            review.kind in ("conflict", "replaced")
            and review.older
            and review.newer.id in ids
            and review.older.id in ids
        ):
            listed.add((ids.index(review.newer.id), ids.index(review.older.id)))
    closed = [(await memory.get(each)).closed_reason in ("superseded", "retracted") for each in ids]
    found["closed"] = [closed[old] for _, old in replaced]
    found["closed_or_in_review"] = [closed[old] or (new, old) in listed for new, old in replaced]
    found["closed_wrongly"] = [is_closed for place, is_closed in enumerate(closed) if place not in over]
    wrong = {(new, old) for new, old in listed if (new, old) not in replaced and old not in over}
    found["listed_wrongly"] = [place in {new for new, _ in wrong} for place in range(len(facts))]
    if show:
        for new, old in sorted(listed | replaced):
            kind = "right" if (new, old) in listed & replaced else "MISSED" if new and not closed[old] else "closed"
            kind = "WRONG" if (new, old) in wrong else kind
            print(f"{row['id']} {kind}: {facts[old]['text']} | {facts[new]['text']}")
    for question in row["questions"]:
        best = (await memory.search(question["ask"], limit=3)).ids
        is_first = bool(best) and best[0] in [ids[place] for place in question["answer"]]
        is_changed = any(new in question["answer"] for new, _ in replaced)
        found["changed_first" if is_changed else "unchanged_first"].append(is_first)
        if show and not is_first:
            texts = [facts[ids.index(each)]["text"] for each in best if each in ids]
            print(f"{row['id']} asked: {question['ask']} {facts[question['answer'][0]]['text']} || {texts}")
    return found


# stories


class Checked(NamedTuple):
    row: Row
    check: Row
    holds: bool
    found: str


async def run_stories(rows: Sequence[Row], embedder: str | None) -> list[Checked]:
    """Tell each story to an owner of its own, consolidate without a model, and check its end."""
    checked: list[Checked] = []
    for row in rows:
        clock = Clock()
        async with Memory.open(":memory:", embedder=embedder, settings=FAST, clock=clock) as memory:
            for number, step in enumerate(row["steps"]):
                clock.at = START + timedelta(days=step["day"], minutes=number)
                if "remember" in step:
                    await memory.remember(step["remember"])
                else:
                    session = f"day {step['day']}"
                    await memory.add(step["say"], speaker=step.get("speaker"), session=session, at=clock.at)
            for session in {f"day {step['day']}" for step in row["steps"] if "say" in step}:
                await memory.end_session(session)
            await memory.consolidate()
            await memory.settle()
            clock.at += timedelta(hours=1)
            checked += [Checked(row, check, *await _check(memory, check)) for check in row["checks"]]
    return checked


async def _check(memory: Memory, check: Row) -> tuple[bool, str]:
    if "question" in check:
        found = await memory.search(check["question"], limit=3)
        texts = [_shown(hit) for hit in found.hits]
        return any(check["first"].casefold() in text.casefold() for text in texts[:1]), " || ".join(texts)
    if "person" in check:
        try:
            known = (await memory.entity(check["person"])).type == "person"
        except NotFoundError:
            known = False
        return known == check["known"], str(known)
    reviewed = {each.older.id for each in await memory.review(limit=500) if each.older}
    piece = check.get("closed") or check.get("live") or check["of"]
    live = [node for node in (await memory.list(limit=500)).nodes if piece.casefold() in node.content.casefold()]
    facts = [node for node in live if node.type != "episodic"]
    if "closed" in check:
        return all(node.id in reviewed for node in facts), str([node.content for node in facts])
    if "live" in check:
        return bool(live), str([node.content for node in live])
    subjects = [_subject(node) for node in live]
    return any(check["subject"] in subject for subject in subjects), str(subjects)


def _shown(hit: Any) -> str:
    return f"{hit.speaker}: {hit.content}" if getattr(hit, "speaker", None) else str(hit.content)


def _subject(node: Node) -> tuple[str, ...]:
    """Return the subjects of a memory, as every interface shows them."""
    return node.about or (node.speaker or "owner",)


def story_figures(checked: Sequence[Checked]) -> dict[str, dict[str, float | int]]:
    groups: dict[str, list[Checked]] = defaultdict(list)
    for each in checked:
        for name in ("all", each.row["language"], each.row["class"], next(iter(each.check))):
            groups[name].append(each)
    return {name: {"checks": len(group), "hold": _share(c.holds for c in group)} for name, group in groups.items()}


def show(outcomes: Iterable[Outcome], stories: Iterable[Checked]) -> None:
    """Print each case that went wrong."""
    for each in outcomes:
        if each.is_wrong:
            row, done = each.row, "closed" if each.closed else "review" if each.in_review else "live"
            print(f"{row['id']} {row['class']}: first={each.first} old={done} (should be {row['old']})")
            print(f"    {row['first']}\n    {row['second']}\n    {row['question']} -> {row['answer']}")
    for told in stories:
        if not told.holds:
            print(f"{told.row['id']} {told.row['class']}: {dict(told.check)} found {told.found}")
            for step in told.row["steps"]:
                print(f"    {step}")


if __name__ == "__main__":
    main()
