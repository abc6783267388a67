"""The pages in Chromium: each page and action, by keyboard, without scripts; hostile texts; accessibility."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from subprocess import CalledProcessError, run
from typing import Any
from urllib.parse import quote

import pytest

pytest.importorskip("jinja2", reason="the extra `server` is not installed")

from ricordo import Fact, Message
from ricordo.interfaces.call import StoreConfig
from ricordo.interfaces.http.tokens import Tokens, tokens_file
from ricordo.settings import Settings
from tests.page.browsing import Site, Watched, chromium, demo_config, serving
from tests.page.hostile import texts

AXE = "axe-core@4.14.1"
PICTURES = Path(__file__).parents[2] / "docs/images"
WIDE = {"width": 1280, "height": 860}
PHONE = {"width": 390, "height": 844}
LISTS = (
    "/",
    "/?q=what+does+Jonas+drink%3F",
    "/page/timeline",
    "/page/people",
    "/page/graph",
    "/page/inbox",
    "/page/conversations",
    "/page/changes",
    "/page/runs",
    "/page/fading",
    "/page/archive",
    "/page/health?check=1",
    "/page/access",
)

FOCUSED = """(() => {
    const at = document.activeElement;
    if (at === document.body) return null;
    window.ids = window.ids || new Map();
    if (!window.ids.has(at)) window.ids.set(at, window.ids.size);
    const style = getComputedStyle(at);
    return [window.ids.get(at), style.outlineStyle !== 'none' || at.matches('input, select, textarea, .skip')];
})()"""
"""Which element has the focus, as a number, and whether that shows."""
STRANGE = """[...document.querySelectorAll('#content *')].filter(each =>
    [...each.attributes].some(one => one.name.startsWith('on')) || String(each.href || '').startsWith('javascript')
    || each.matches('script, iframe, base, meta, link, style, object, embed, img')).length"""
"""How many elements of the content can come from a memory's text only."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, browser: Any) -> Iterator[Site]:
    config = demo_config(tmp_path_factory.mktemp("demo"))
    Tokens(tokens_file(config.location)).add("an agent", owner="me", chat=None, trust="agent", access=("read", "write"))
    with serving(config) as served:
        yield served


@pytest.fixture
def fresh(tmp_path: Path, browser: Any) -> Iterator[Site]:
    with serving(demo_config(tmp_path)) as served:
        yield served


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The source of axe, from npm."""
    folder = tmp_path_factory.mktemp("axe")
    try:
        run(["npm", "pack", AXE], cwd=folder, check=True, capture_output=True, timeout=120)
    except (OSError, CalledProcessError) as error:
        pytest.skip(f"axe cannot be fetched from npm: {error}")
    with tarfile.open(next(folder.glob("*.tgz"))) as package:
        member = package.extractfile("package/axe.min.js")
        assert member is not None
        return member.read().decode()


def pages(site: Site) -> list[str]:
    """The address of every page, with things that exist."""
    fact = next(
        each for each in site.do(lambda memory: memory.list(type="semantic")).nodes if "Hafenlicht" in each.content
    )
    run_id = site.do(lambda memory: memory.runs())[0].id
    return [
        *LISTS,
        f"/page/memory?id={fact.id}",
        f"/page/memory/erase?id={fact.id}",
        "/page/change?id=5",
        "/page/conversation?id=2026-05-18-back-home",
        f"/page/run?id={run_id}",
        "/page/entity?id=Vera",
        "/page/entity/merge?id=Vera&other=Jonas",
        "/page/nothing",
        "/page/memory?id=nothing",
    ]


@pytest.mark.parametrize("scheme", ("light", "dark"))
@pytest.mark.parametrize("size", (WIDE, PHONE), ids=("wide", "phone"))
def test_every_page_is_silent_fits_and_has_no_findings_of_axe(
    browser: Any, site: Site, axe: str, scheme: str, size: dict[str, int]
) -> None:
    window = Watched(browser, site, viewport=size, color_scheme=scheme)
    found: list[Any] = []
    for path in pages(site):
        window.page.goto(path)
        assert window.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path
        for each in window.page.query_selector_all("details"):
            each.evaluate("each => each.open = true")
        window.page.evaluate(axe)
        answer = window.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        found += [(path, each["id"], [node["target"] for node in each["nodes"]][:3]) for each in answer["violations"]]
    window.said = [text for text in window.said if "404" not in text]  # the two pages that do not exist
    window.check()
    assert found == []
    window.close()


def test_what_is_typed_is_answered_as_it_is_typed(browser: Any, site: Site) -> None:
    window = Watched(browser, site, viewport=WIDE)
    window.page.get_by_role("searchbox").press_sequentially("penicillin Vera", delay=30)
    window.page.wait_for_url("**/?q=penicillin*Vera")  # what was typed before is answered before
    window.page.locator("#results .hit").first.filter(has_text="penicillin").wait_for()
    window.page.locator("#context pre").filter(has_text="penicillin").wait_for()
    window.page.click("#results .hit summary >> nth=0")
    window.page.wait_for_timeout(500)  # leaving the field must not ask again, which would close what was opened
    assert window.page.locator("#results .hit .bars >> nth=0").is_visible()
    window.check()
    window.close()


def test_a_memory_is_corrected_confirmed_forgotten_restored_undone_and_erased(browser: Any, fresh: Site) -> None:
    window = Watched(browser, fresh, viewport=WIDE)
    page = window.page
    page.goto("/?q=where+does+Vera+live")
    page.click("text=Vera lives in Hamburg")
    page.click("summary:has-text('Correct')")
    page.fill("textarea[name=content]", "Vera lives in Altona, Hamburg")
    page.click("text=Save the correction")
    assert page.inner_text("h1") == "Vera lives in Altona, Hamburg"
    assert page.inner_text(".versions li >> nth=0").count("Altona") == 1
    page.click(".notice >> text=Undo")
    assert "Undone" in page.inner_text(".notice")
    assert "Vera lives in Hamburg" in fresh.do(lambda memory: memory.search("where does Vera live")).hits[0].content
    page.goto("/?q=where+does+Vera+live")
    page.click("text=Vera lives in Hamburg")
    for button, done in (
        ("Confirm", "Confirmed"),
        ("Useful", "useful"),
        ("Not useful", "not useful"),
        ("Forget", "Forgotten"),
    ):
        page.get_by_role("button", name=button, exact=True).click()
        assert done in page.inner_text(".notice")
    page.get_by_role("button", name="Restore").click()
    assert "Restored" in page.inner_text(".notice")
    page.click("text=Erase for good")
    page.fill("input[name=words]", "something else")
    page.click("button:has-text('Erase for good')")
    assert "Nothing was erased" in page.inner_text("main")
    page.go_back()
    page.fill("input[name=words]", "vera lives IN")
    page.click("button:has-text('Erase for good')")
    assert page.inner_text("h1") == "Erased"
    assert "Hamburg" not in str(fresh.do(lambda memory: memory.list(category="identity")).nodes)
    window.said = [text for text in window.said if "422" not in text]
    window.check()
    window.close()


def test_the_inbox_is_decided_by_keys_alone(browser: Any, fresh: Site) -> None:
    window = Watched(browser, fresh, viewport=WIDE)
    page = window.page
    page.goto("/page/inbox")
    before = page.locator("[data-review]").count()
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert "Ignore all previous" in page.evaluate("document.activeElement.textContent")
    assert "U+202E" in page.evaluate("document.activeElement.textContent")
    with page.expect_navigation():
        page.keyboard.press("x")
    assert "Refused" in page.inner_text(".notice")
    with page.expect_navigation():
        page.keyboard.press("r")
    assert page.locator("[data-review]").count() == before - 2
    page.click(".notice >> text=Undo")
    page.goto("/page/inbox")
    assert page.locator("[data-review]").count() == before - 1
    window.check()
    window.close()


def test_an_undo_shows_what_builds_on_it_and_takes_all_back(browser: Any, fresh: Site) -> None:
    node = fresh.do(lambda memory: memory.remember("The bicycle is in the cellar"))
    fixed = fresh.do(lambda memory: memory.correct(node.id, "The bicycle is in the hall"))
    window = Watched(browser, fresh, viewport=WIDE)
    page = window.page
    page.goto(f"/page/memory?id={fixed.id}")
    page.click(".versions li:last-child a")
    page.click("main >> text=Undo")
    assert "Later changes build on it" in page.inner_text("main")
    page.click("text=Undo all of them")
    assert "Undone" in page.inner_text(".notice")
    assert "bicycle" not in str(fresh.do(lambda memory: memory.search("bicycle")).hits)
    window.said = [text for text in window.said if "409" not in text]
    window.check()
    window.close()


def test_a_time_holds_for_every_page(browser: Any, fresh: Site) -> None:
    window = Watched(browser, fresh, viewport=WIDE)
    page = window.page
    page.goto("/page/timeline")
    page.fill("#as_of", "2026-03-01")
    page.click("text=Go there")
    assert "2026-03-01" in page.inner_text(".then")
    page.goto("/?q=where+does+Vera+live")
    assert "Leipzig" in page.inner_text("#results") and "Hamburg" not in page.inner_text("#results")
    page.click("text=Vera lives in Leipzig")
    page.wait_for_selector("text=Versions")
    assert page.locator("text=Forget").count() == 0
    for path, was, was_not in (
        ("/page/people", "Miriam", "Frau Oltmann"),
        ("/page/graph", "Miriam", "Frau Oltmann"),
        ("/page/entity?id=Vera", "Vera works at Dentalis", "Hafenlicht"),
        ("/page/runs", "No conversation was read yet.", "2026-06-27"),
    ):
        page.goto(path)
        assert was in page.inner_text("main") and was_not not in page.inner_text("main"), path
    page.click("text=Back to now")
    page.wait_for_selector(".then", state="detached")
    page.goto("/?q=where+does+Vera+live")
    assert "Hamburg" in page.inner_text("#results")
    page.goto("/page/timeline")
    assert (page.get_attribute("#slider", "aria-valuetext") or "").startswith("2026-")
    page.locator("#slider").evaluate("each => { each.value = 300; each.dispatchEvent(new Event('change')); }")
    page.wait_for_selector(".then")
    window.check()
    window.close()


def test_people_are_merged_and_split_after_a_preview(browser: Any, fresh: Site) -> None:
    window = Watched(browser, fresh, viewport=WIDE)
    page = window.page
    page.goto("/page/people?name=Tamara")
    page.fill("#other", "Ingrid")
    page.click("form[action='/page/entity/merge'] >> text=Preview")
    assert "Ingrid" in page.inner_text(".pair")
    page.click("main >> button:has-text('Merge them')")
    assert "They are one now" in page.inner_text(".notice")
    page.check("input[name=name][value=Ingrid]")
    page.click("form[action='/page/entity/split'] >> text=Preview")
    page.click("main >> button:has-text('Split them')")
    assert "They are two now" in page.inner_text(".notice")
    page.fill("#alias", "Tante Tamara")
    page.click("text=Add")
    assert "Tante Tamara" in page.inner_text("main")
    page.click("text=Never let it fade")
    assert "never fades" in page.inner_text("main")
    window.check()
    window.close()


def test_a_conversation_is_ended_read_and_taken_back(browser: Any, fresh: Site) -> None:
    fresh.do(
        lambda memory: memory.add_many([Message(text="Ole lives in Bremen", session="new talk/1", speaker="Vera")])
    )
    window = Watched(browser, fresh, viewport=WIDE)
    page = window.page
    page.goto("/page/conversations")
    page.click("text=new talk/1")
    page.click("text=Off the record")
    assert "Nothing more" in page.inner_text(".notice")
    page.click("text=On the record")
    page.click("button:has-text('End it')")
    assert "ended" in page.inner_text(".notice")
    page.goto("/page/runs")
    page.click("tbody a >> nth=0")
    page.get_by_role("button", name="Ask the model again").click()
    assert "Replay" in page.inner_text("h1")
    page.goto("/page/runs")
    page.click("text=Consolidation >> nth=0")
    page.click("text=Undo the whole run")
    assert "Undone" in page.inner_text(".notice")
    window.check()
    window.close()


def test_the_graph_is_drawn_opened_and_always_the_same(browser: Any, site: Site) -> None:
    window = Watched(browser, site, viewport=WIDE)
    window.page.goto("/page/graph")
    window.page.wait_for_selector("#graph[data-ready] canvas")
    first = window.page.evaluate("fetch('/page/graph.json').then(each => each.text())")
    assert first == window.page.evaluate("fetch('/page/graph.json').then(each => each.text())")
    window.page.click("tbody tr:has-text('Vera') >> text=Open")
    assert "penicillin" in window.page.inner_text("tbody")
    window.page.goto("/page/health")
    window.page.wait_for_selector("[data-plot][data-ready] canvas")
    window.check()
    window.close()


def test_tokens_are_made_and_revoked(browser: Any, fresh: Site) -> None:
    window = Watched(browser, fresh, viewport=WIDE)
    page = window.page
    page.goto("/page/access")
    page.fill("#name", "phone")
    page.click("text=Create it")
    secret = page.inner_text(".notice code")
    other = Watched(browser, fresh, viewport=PHONE)
    other.context.clear_cookies()
    other.page.goto("/page/enter")
    other.page.fill("#token", secret)
    other.page.click("text=Open")
    assert other.page.locator("nav a:has-text('Owners')").count() == 0
    assert other.page.goto("/page/access").status == 403
    page.click("text=Revoke")
    assert other.page.goto("/page/inbox").status == 401
    window.check()
    window.close()
    other.close()


def test_what_another_program_writes_appears(browser: Any, fresh: Site) -> None:
    window = Watched(browser, fresh, viewport=WIDE)
    window.page.goto("/")
    fresh.do(lambda memory: memory.remember("The lamp on the balcony is broken"))
    window.page.wait_for_selector("text=The lamp on the balcony is broken")
    window.page.fill("#q", "lam")
    fresh.do(lambda memory: memory.remember("The oven is repaired"))
    window.page.wait_for_selector("#news:not([hidden])")
    assert window.page.input_value("#q") == "lam"
    window.check()
    window.close()


def test_without_scripts_everything_but_graph_and_plots_works(browser: Any, fresh: Site) -> None:
    window = Watched(browser, fresh, viewport=WIDE, java_script_enabled=False)
    page = window.page
    page.fill("#q", "where does Vera live")
    page.click("button:has-text('Search')")
    assert "Hamburg" in page.inner_text("#results") and "Hamburg" in page.inner_text("#context")
    page.click("text=Vera lives in Hamburg")
    page.get_by_role("button", name="Forget", exact=True).click()
    page.click(".notice >> text=Undo")
    page.goto("/page/inbox")
    page.click("text=Refuse")
    page.select_option("#language", "ru")
    page.click("button:has-text('Choose')")
    assert page.inner_text("nav a >> nth=0") == "Поиск"
    window.check()
    window.close()


def test_everything_is_reached_by_keyboard(browser: Any, site: Site) -> None:
    """Tab reaches every link, field and button of each page, in order, and shows where it is."""
    window = Watched(browser, site, viewport=WIDE)
    page = window.page
    for path in pages(site)[:-2]:
        page.goto(path)
        wanted = page.evaluate(
            """[...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary')]
            .filter(each => each.checkVisibility() && each.tabIndex >= 0).length"""
        )
        page.evaluate("document.activeElement.blur()")
        reached = set()
        for _ in range(min(wanted, 60) + 25):
            page.keyboard.press("Tab")
            seen = page.evaluate(FOCUSED)
            if seen is not None:
                reached.add(seen[0])
                assert seen[1], (path, page.evaluate("document.activeElement.outerHTML.slice(0, 200)"))
        assert len(reached) >= min(wanted, 60), path
    page.goto("/page/inbox")
    page.keyboard.press("/")
    page.wait_for_url("**/")
    assert page.evaluate("document.activeElement.id") == "q"
    window.check()
    window.close()


def test_hostile_texts_run_nothing_and_break_no_layout(browser: Any, tmp_path: Path) -> None:
    config = StoreConfig(location=str(tmp_path / "h.db"), embedder="hashing", model=None, settings=Settings())
    given = list(texts())
    with serving(config) as site:
        ids = [
            node.id
            for node in site.do(
                lambda memory: memory.remember_many([Fact(content=text, tags=[text[:60]]) for text in given])
            )
        ]
        places = _spread(site, given, ids)
        window = Watched(browser, site, viewport=PHONE)
        page = window.page
        for path in (*LISTS, *places):
            page.goto(path)
            assert page.evaluate("window.pwned") is None, path
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path
            strange = page.evaluate(STRANGE)
            assert strange == 0, path
            assert page.locator("nav a >> nth=0").is_visible(), path
        for text in given[::20]:
            page.goto("/")
            page.fill("#q", text[:1_500])
            page.wait_for_selector("#results .count")
            assert page.evaluate("window.pwned") is None
        window.said = [text for text in window.said if "404" not in text and "422" not in text]
        window.check()
        window.close()


def _spread(site: Site, given: list[str], ids: list[str]) -> list[str]:
    """Put the texts into every field that a page shows; return the pages."""

    async def fill(memory: Any) -> list[str]:
        await memory.add_many(
            [
                Message(text=text, speaker=text[:90], session=f"s{number % 40} {text[:60]}")
                for number, text in enumerate(given)
            ]
        )
        names = []
        for number, text in enumerate(given[:120]):
            name = " ".join(text[:80].split())
            try:
                names.append((await memory.add_entity(name, aliases=[f"other {number} {name[:40]}"])).id)
            except Exception:  # noqa: BLE001  # a name that is refused is shown nowhere
                continue
        for id, text in list(zip(ids, given, strict=True))[::5]:
            await memory.forget(id, reason=text[:400])
        for id, text in list(zip(ids, given, strict=True))[1::5]:
            await memory.correct(id, f"{text[:500]} and more")
        for text in given[:60]:
            await memory.remember(text + " too", origin="web")
        sessions = [each.id for each in await memory.sessions()]
        await memory.settle()
        return [
            *(f"/page/memory?id={quote(id)}" for id in ids),
            *(f"/page/entity?id={quote(id)}" for id in names[:40]),
            *(f"/page/conversation?id={quote(id, safe='')}" for id in sessions[:40]),
            *(f"/page/change?id={number}" for number in (1, 2, 3, 130, 150, 170)),
            *(f"/?q={quote(text[:200])}" for text in given[::10]),
            f"/page/memory/erase?id={quote(ids[2])}",
        ]

    return site.do(fill)


def test_the_pictures_of_the_documentation(browser: Any, site: Site) -> None:
    """With RICORDO_PICTURES=1, write them; otherwise check that they are there and small."""
    shown = {
        "search": "/?q=what+does+Jonas+drink%3F",
        "inbox": "/page/inbox",
        "graph": "/page/graph",
        "timeline": "/page/timeline",
    }
    if os.environ.get("RICORDO_PICTURES"):
        PICTURES.mkdir(exist_ok=True)
        for name, path in shown.items():
            window = Watched(browser, site, viewport={"width": 1040, "height": 640})
            window.page.goto(path)
            window.page.wait_for_timeout(800)
            window.page.screenshot(path=str(PICTURES / f"page-{name}.png"))
            window.close()
    for name in shown:
        assert 5_000 < (PICTURES / f"page-{name}.png").stat().st_size < 150_000


def test_leaving_while_an_answer_is_on_its_way_is_no_error(browser: Any, site: Site) -> None:
    window = Watched(browser, site, viewport=WIDE)
    window.page.route("**/page/results*", lambda route: None)  # the answer never comes
    for _ in range(3):
        window.page.goto("/")
        window.page.get_by_role("searchbox").press_sequentially("Jonas", delay=160)
        window.page.goto("/page/inbox")
    window.check()
    window.close()
