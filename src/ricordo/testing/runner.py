"""Run recall tests: create or copy the memory of a file, ask each question, and judge the answers."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ricordo.clock import SystemClock
from ricordo.errors import InvalidError, NotFoundError
from ricordo.model import Scope
from ricordo.settings import PREFIX, Settings, load, unknown_setting, zone_of
from ricordo.testing.cases import Case, Step, Suite, Whose, found_in

if TYPE_CHECKING:
    from ricordo.memory import Memory

MODELS = ("embedder", "reranker")
"""Parts of a configuration besides settings."""

_FAR = 50  # how far down a missing memory is searched, to report its rank
_SHOWN_CHARS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a case: passed if it has no failures.

    Attributes:
        found: the texts that were found, best first.
    """

    case: Case
    failures: tuple[str, ...]
    found: tuple[str, ...]
    seconds: float

    @property
    def passed(self) -> bool:
        return not self.failures


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The outcomes of a file in one configuration. `configuration` holds the differences from the file."""

    path: Path
    outcomes: tuple[Outcome, ...]
    configuration: Mapping[str, str] = field(default_factory=dict)

    @property
    def passed(self) -> int:
        """Return the number of cases that passed."""
        return sum(each.passed for each in self.outcomes)


class _MovableClock:
    """A clock that stops once it is set."""

    def __init__(self) -> None:
        self.at: int | None = None
        self._system = SystemClock()

    def now(self) -> int:
        return self._system.now() if self.at is None else self.at


async def run(suite: Suite, configuration: Mapping[str, str] | None = None) -> Report:
    """Run the cases of a file. An existing store is copied first, so that it and its statistics are not changed.

    Args:
        configuration: replaces the file's `embedder` and `reranker`, and settings by name.

    Raises:
        NotFoundError: the store does not exist.
        InvalidError: a step or a setting is invalid.
    """
    given = dict(configuration or {})
    async with _memory_of(suite, given) as memory:
        outcomes = [await _judged(memory, suite, case) for case in suite.cases]
    return Report(path=suite.path, outcomes=tuple(outcomes), configuration=given)


def _settings(given: Mapping[str, Any]) -> Settings:
    known = {each.name for each in fields(Settings)}
    for name in given.keys() - known:
        raise unknown_setting(name)
    return load(environment={f"{PREFIX}{name.upper()}": str(value) for name, value in given.items()})


@asynccontextmanager
async def _memory_of(suite: Suite, configuration: Mapping[str, str]) -> AsyncIterator[Memory]:
    from ricordo.memory import Memory

    clock = _MovableClock()
    chosen = {name: value for name, value in configuration.items() if name not in MODELS}
    options: dict[str, Any] = {
        "embedder": configuration.get("embedder", suite.embedder or ("stored" if suite.store else "default")),
        "settings": _settings({**suite.settings, **chosen}),
        "clock": clock,
    }
    if options["embedder"] == "none":
        options["embedder"] = None
    if "reranker" in configuration and configuration["reranker"] != "none":
        options["reranker"] = configuration["reranker"]
    with TemporaryDirectory(prefix="ricordo-test-") as folder:
        location = (
            ":memory:"
            if suite.store is None
            else await _copied(suite.path.parent / suite.store, Path(folder), key=options["settings"].key)
        )
        async with Memory.open(location, **options) as memory:
            for number, step in enumerate(suite.memories, start=1):
                if step.at is not None:
                    clock.at = _instant(step.at, f"memories.{number}.at", options["settings"])
                await _take(memory, step, number=number)
            clock.at = None if suite.now is None else _instant(suite.now, "now", options["settings"])
            await memory.settle()
            yield memory


async def _copied(store: Path, folder: Path, *, key: str) -> str:
    """Copy a store; return the location of the copy."""
    from ricordo.memory import Memory

    _require(store)
    async with Memory.open(store, embedder="stored", key=key) as memory:
        await memory.backup(folder / "copy.db")
    return str(folder / "copy.db")


def _require(store: Path) -> None:
    if not store.exists():
        raise NotFoundError(f"store: there is no memory at {store}")


def _instant(text: str, name: str, settings: Settings) -> int:
    from ricordo.text.dates import parse_instant

    return parse_instant(text, now=SystemClock().now(), zone=zone_of(settings.time_zone), field=name)


async def _take(memory: Memory, step: Step, *, number: int) -> None:
    own = memory.scoped(_scope(step.whose))
    if step.said is not None:
        await own.add(step.said, role=step.role, speaker=step.by, session=step.session)
    elif step.fact is not None:
        await own.remember(step.fact, about=step.about, tags=step.tags, expires=step.expires, session=step.session)
    else:
        await _forget(own, step.forget or "", number=number)


async def _forget(memory: Memory, words: str, *, number: int) -> None:
    nodes = (await memory.list(type="any", limit=1_000)).nodes
    meant = found_in(words, [(node.id, node.content) for node in nodes])
    if len(meant) != 1:
        raise InvalidError(
            f"memories.{number}.forget: {words!r} is in {len(meant)} memories",
            hint="the words must occur in exactly one memory",
        )
    await memory.forget(nodes[meant[0]].id)


def _scope(whose: Whose) -> Scope:
    return Scope(owner=whose.owner, chat=whose.chat, trust=whose.trust)


async def _judged(memory: Memory, suite: Suite, case: Case) -> Outcome:
    started = time.perf_counter()
    own = memory.scoped(_scope(case.whose))
    limit = case.limit or suite.limit
    found = await (_lines(own, case) if case.at == "context" else _hits(own, case, limit=limit))
    is_missing = case.at == "search" and any(not found_in(each, found) for each in case.must)
    far = await _hits(own, case, limit=max(_FAR, limit)) if is_missing else ()
    failures = (*_missing(case, found, limit=limit, far=far), *_forbidden(case, found))
    return Outcome(
        case=case, failures=failures, found=tuple(text for _, text in found), seconds=time.perf_counter() - started
    )


async def _hits(memory: Memory, case: Case, *, limit: int) -> list[tuple[str, str]]:
    results = await memory.search(
        case.ask, type="any", as_of=case.as_of, limit=limit, only_relevant=case.silent is not None
    )
    return [(hit.id, f"{hit.speaker}: {hit.content}" if hit.speaker else hit.content) for hit in results.hits]


async def _lines(memory: Memory, case: Case) -> list[tuple[str, str]]:
    parts = await memory.context_parts(case.ask, as_of=case.as_of)
    return [(line.id or "", line.text) for section in parts.sections for line in section.lines]


def _missing(case: Case, found: Sequence[tuple[str, str]], *, limit: int, far: Sequence[tuple[str, str]]) -> list[str]:
    """Return failures for expected texts that were not found, with their rank among further hits."""
    where = "in the context" if case.at == "context" else f"among the {limit} best"
    failures = []
    for each in case.must:
        if not found_in(each, found):
            place = next(iter(found_in(each, far)), None)
            at = f"; it is hit {place + 1}" if place is not None else ""
            failures.append(f"must: “{each}” is not {where}{at}")
    if case.first is not None and 0 not in found_in(case.first, found):
        is_first = f"“{_short(found[0][1])}” is" if found else "nothing was found"
        failures.append(f"first: “{case.first}” is not first; {is_first}")
    if case.silent is False and not found:
        failures.append("silent: nothing was found relevant")
    return failures


def _forbidden(case: Case, found: Sequence[tuple[str, str]]) -> list[str]:
    """Return failures for texts that were found although they must not be, or are not among the allowed ones."""
    failures = []
    for each in case.must_not:
        places = found_in(each, found)
        failures += [f"must_not: “{each}” is hit {place + 1}: “{_short(found[place][1])}”" for place in places]
    if case.silent and found:
        failures.append(f"silent: “{_short(found[0][1])}” was found relevant")
    if case.may is not None:
        named = (*case.must, *([case.first] if case.first else []), *case.may)
        allowed = {place for each in named for place in found_in(each, found)}
        others = [text for place, (_, text) in enumerate(found) if place not in allowed]
        failures += [f"may: “{_short(text)}” is found besides" for text in others]
    return failures


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARS else f"{line[: _SHOWN_CHARS - 1]}…"
