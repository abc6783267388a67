"""Ten tasks on the page, each tried five times as somebody who has never seen it: `make tries`.

A try uses only what can be read: the words on links, buttons and fields. The five visitors differ in language, width
and way of working, and each takes another route with other words.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ricordo.interfaces.page.rendering import Texts
from tests.page.browsing import Site, Watched, chromium, demo_config, serving

_MOST_TABS = 400
_FOCUSED = """() => {
    const found = document.activeElement;
    const label = found.labels && found.labels.length ? found.labels[0].innerText : '';
    return [found.tagName, (label || found.getAttribute('aria-label') || found.innerText || '').trim()];
}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A way to visit the page."""

    name: str
    language: str = "en"
    locale: str = "en-GB"
    width: int = 1280
    has_mouse: bool = True


KINDS = (
    Kind(name="English, mouse"),
    Kind(name="English, phone", width=390),
    Kind(name="English, keyboard alone", has_mouse=False),
    Kind(name="German, mouse", language="de", locale="de-DE"),
    Kind(name="Russian, phone", language="ru", locale="ru-RU", width=390),
)


class Visitor:
    """Somebody who reads the page, and presses and types what it says."""

    def __init__(self, window: Watched, kind: Kind) -> None:
        self.page, self.kind, self.label = window.page, kind, Texts(kind.language)
        self.page.set_default_timeout(20_000)

    def reads(self) -> str:
        self.page.wait_for_timeout(250)
        self.page.wait_for_load_state()
        return str(self.page.inner_text("main"))

    def presses(self, text: str) -> str:
        """Press the first link, button or heading to unfold that has these words."""
        if not self.kind.has_mouse:
            self._tab_to(text, {"A", "BUTTON", "SUMMARY"})
            self.page.keyboard.press("Enter")
            return self.reads()
        words = re.compile(re.escape(text))
        found = self.page.get_by_role("button", name=words).or_(self.page.get_by_role("link", name=words))
        found.or_(self.page.locator("summary", has_text=text)).first.click()
        return self.reads()

    def types(self, label: str, text: str) -> None:
        if not self.kind.has_mouse:
            self._tab_to(label, {"INPUT", "TEXTAREA"})
            self.page.keyboard.press("Control+A")
            self.page.keyboard.type(text)
        else:
            exactly = self.page.get_by_label(label, exact=True)
            (exactly if exactly.count() else self.page.get_by_label(label)).first.fill(text)

    def goes_to(self, name: str) -> str:
        return self.presses(self.label(f"nav.{name}"))

    def does(self, name: str) -> str:
        return self.presses(self.label(name))

    def asks(self, *questions: str, until: str = "") -> str:
        """Ask and, as people do, ask in other words where the answer does not show what is looked for."""
        said = ""
        for question in questions:
            self.goes_to("search")
            self.types(self.label("search.label"), question)
            self.page.keyboard.press("Enter")
            if until in (said := self.reads()):
                break
        return said

    def sees(self, words: str) -> bool:
        """Return whether there is a link with these words."""
        return bool(self.page.get_by_role("link", name=words).count())

    def travels_to(self, time: str) -> str:
        self.goes_to("timeline")
        self.types(self.label("time.at"), time)
        return self.does("time.go")

    def _tab_to(self, text: str, tags: set[str]) -> None:
        for _ in range(_MOST_TABS):
            self.page.keyboard.press("Tab")
            tag, said = self.page.evaluate(_FOCUSED)
            if tag in tags and text in said:
                return
        raise AssertionError(f"the Tab key does not reach “{text}”")


def expect(said: str, *words: str, without: str = "") -> None:
    """Fail if a text lacks words that the visitor looks for, or has others."""
    missing = [each for each in words if each not in said]
    assert not missing, f"“{missing[0]}” is not on the page"
    assert not without or without not in said, f"“{without}” is still on the page"


# the tasks


def correct_where_she_lives(one: Visitor, route: int) -> None:
    if route in (0, 1, 3):
        question = ("where does Vera live", "Vera Hamburg", "", "Wo wohnt Vera?")[route]
        one.asks(question, "Vera Hamburg", until="Vera lives in Hamburg")
    else:
        one.goes_to("people")
        one.presses("Vera")
    one.presses("Vera lives in Hamburg")
    expect(one.reads(), one.label("memory.origin"), one.label("memory.sources"))
    one.does("act.correct")
    one.types(one.label("memory.right"), "Vera lives in Altona")
    expect(one.does("act.save"), one.label("done.corrected"))
    expect(one.asks("where does Vera live"), "Vera lives in Altona")


def undo_a_run(one: Visitor, route: int) -> None:
    if route in (0, 1, 3):
        one.goes_to("runs")
        one.presses(one.label("run.consolidation"))
    else:  # from what it made
        one.asks("what does Sarah eat", "Sarah plants", until="Sarah eats plants alone")
        expect(one.presses("Sarah eats plants alone"), one.label("memory.made"))
        one.presses(one.label("changes.number", seq="6"))  # not the message "Change of menu: ..."
    said = one.does("act.undo_run")
    if one.label("changes.later") in said:
        said = one.does("act.undo_all")
    expect(said, one.label("done.undone"))
    expect(one.goes_to("runs"), one.label("run_state.undone"))


def look_at_march(one: Visitor, route: int) -> None:
    times = ("2026-03-15", "1 March 2026", "2026-03-31 12:00", "15. März 2026", "15 марта 2026")
    if route == 1:
        expect(one.travels_to("some day"), one.label("problem.title"))
        one.does("problem.back")
    one.travels_to(times[route])
    if route in (2, 4):
        one.goes_to("people")
        said = one.presses("Vera")
    else:
        said = one.asks("where does Vera live")
    expect(said, "Leipzig", without="lives in Hamburg")
    one.does("time.now")
    expect(one.asks("where does Vera live"), "lives in Hamburg")


def settle_a_contradiction(one: Visitor, route: int) -> None:
    decision = ("replace", "keep_old", "keep_both", "replace", "keep_both")[route]
    before = one.goes_to("inbox").count(one.label("inbox.newer"))
    if route == 2:
        one.page.keyboard.press("j")
        one.page.keyboard.press("b")
        said = one.reads()
    else:
        said = one.does(f"decide.{decision}")
    expect(said, one.label(f"done.{decision}"))
    assert said.count(one.label("inbox.newer")) < before, "the pair still waits"


def decide_on_a_web_page(one: Visitor, route: int) -> None:
    decision = ("approve", "refuse", "refuse", "approve", "refuse")[route]
    expect(one.goes_to("inbox"), "U+202E", one.label("inbox.held"))
    expect(one.does(f"decide.{decision}"), one.label(f"done.{decision}"), without=one.label("inbox.held_is"))


def read_the_conversation(one: Visitor, route: int) -> None:
    if route == 4:
        one.goes_to("conversations")
        one.presses("2026-")
    else:
        question, words = (
            ("hazelnut allergy", "hazelnut"),
            ("which medicine must Vera not get", "пенициллин"),
            ("who looks after the cat", "cat"),
            ("Wogegen ist Vera allergisch?", "пенициллин"),
        )[route]
        one.asks(question)
        said = one.presses(words)
        if one.label("memory.same_day") in said:  # a fact that nobody said in a conversation
            one.does("memory.same_day")
            said = one.presses("hazelnut paste" if route == 0 else words)
        if one.label("memory.jump") in said:
            one.does("memory.jump")
        else:
            one.presses("2026-")
    expect(one.reads(), one.label("conversations.messages", count="").strip(" :"))


def forget_and_bring_back(one: Visitor, route: int) -> None:
    book = "Vera reads The Summer Book"
    question = ("which book does Vera read", "Summer Book", "Vera reads", "Was liest Vera?", "Что читает Вера?")[route]
    one.asks(question)
    if not one.sees(book):
        one.asks("Vera Summer Book")
    one.presses(book)
    expect(one.does("act.forget"), one.label("done.forgotten"))
    if route in (0, 2):
        expect(one.goes_to("archive"), book)
        one.presses(book)
        said = one.does("act.restore")
        expect(said, one.label("done.restored"))
    elif route == 1:
        expect(one.does("act.undo"), one.label("done.undone"))
    else:
        one.goes_to("changes")
        expect(one.does("act.undo"), one.label("done.undone"))
    expect(one.asks("Summer Book"), book)


def erase_for_good(one: Visitor, route: int) -> None:
    text = "Herr Petersen is the landlord"
    one.asks(("landlord in Altona", "Petersen", "who is the landlord", "Wer ist der Vermieter?", "Petersen")[route])
    one.presses(text)
    expect(one.does("act.erase"), one.label("erase.warning"))
    if route == 1:
        one.types(one.label("erase.type"), "something else")
        expect(one.does("act.erase"), one.label("erase.mismatch"))
    one.types(one.label("erase.type"), "Herr Petersen is")
    expect(one.does("act.erase"), one.label("erase.done"))
    expect(one.asks("landlord in Altona"), without=text)


def find_out_who_it_is(one: Visitor, route: int) -> None:
    name = ("Miriam", "Jonas", "Pixel", "Tamara", "Vera")[route]
    if route == 1:
        one.goes_to("people")
        one.types(one.label("people.find"), name)
        one.page.keyboard.press("Enter")
    elif route == 3:
        one.goes_to("graph")
        one.presses(name)
    else:
        one.goes_to("people")
        one.presses(name)
    expect(one.reads(), name, one.label("people.relations"))
    expect(one.does("people.in_graph"), one.label("graph.table"), name)


def keep_what_would_be_lost(one: Visitor, route: int) -> None:
    if route in (0, 2, 4):
        before = one.goes_to("fading")
        done = ("confirm", "", "confirm", "", "reinforce")[route]
        said = one.does(f"act.{done}")
        expect(said, one.label("done.confirmed" if done == "confirm" else "done.reinforced"))
        assert said != before, "nothing has changed"
    else:
        one.goes_to("health")
        expect(one.does("health.run_check"), "✓", without="✗")


TASKS: tuple[Callable[[Visitor, int], None], ...] = (
    correct_where_she_lives,
    undo_a_run,
    look_at_march,
    settle_a_contradiction,
    decide_on_a_web_page,
    read_the_conversation,
    forget_and_bring_back,
    erase_for_good,
    find_out_who_it_is,
    keep_what_would_be_lost,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """How one visitor got on with one task; `problem` is empty if it was done."""

    task: str
    visitor: str
    problem: str
    seconds: float


def tried(browser: Any, site: Site, task: Callable[[Visitor, int], None], route: int) -> Try:
    """Try a task once."""
    kind, began, problem = KINDS[route], time.monotonic(), ""
    window = Watched(browser, site, locale=kind.locale, viewport={"width": kind.width, "height": 860})
    try:
        task(Visitor(window, kind), route)
        window.said = [each for each in window.said if "the server responded with a status of 4" not in each]
        window.check()
    except Exception as error:  # noqa: BLE001 - whatever goes wrong, the task was not done
        problem = (str(error).splitlines() or [type(error).__name__])[0]
    finally:
        window.close()
    seconds = round(time.monotonic() - began, 1)
    return Try(task=task.__name__.replace("_", " "), visitor=kind.name, problem=problem, seconds=seconds)


def all_tries(*, embedder: str, only: str = "") -> Iterator[Try]:
    """Try each task in each way, each time in a fresh memory of the demo."""
    with chromium() as browser:
        for task in TASKS:
            for route in range(len(KINDS)) if only in task.__name__ else ():
                with tempfile.TemporaryDirectory() as folder, serving(demo_config(Path(folder), embedder)) as site:
                    yield tried(browser, site, task, route)


def main() -> None:
    """Print each try and write them all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", default="", help="part of a task's name")
    parser.add_argument("--embedder", default="default")
    asked = parser.parse_args()
    found = []
    for each in all_tries(embedder=asked.embedder, only=asked.only):
        found.append(each)
        sys.stdout.write(
            f"{'✗' if each.problem else '✓'} {each.task} · {each.visitor}: {each.problem or each.seconds}\n"
        )
        sys.stdout.flush()
    done = sum(not each.problem for each in found)
    sys.stdout.write(f"{done} of {len(found)} done\n")
    if asked.out:
        tries = [
            {"task": each.task, "visitor": each.visitor, "problem": each.problem, "seconds": each.seconds}
            for each in found
        ]
        asked.out.write_text(json.dumps({"done": done, "tries": tries}, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
