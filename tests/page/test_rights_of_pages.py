"""The table of rights, at every page and form."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ricordo.interfaces.http.tokens import digest
from ricordo.interfaces.page.site import _PAGES
from ricordo.model import Trust
from tests.interfaces.serving import BASE, House, house
from tests.interfaces.test_rights import TOKENS, TRUSTS, expected

READS = "store_view.commits"
NEEDS: Mapping[tuple[str, str], tuple[str, ...]] = {
    **{(method, path): (READS,) for method, path, _, _ in _PAGES if method == "GET"},
    ("GET", "/page/health"): (READS, "doctor"),
    ("GET", "/page/access"): (READS, "page.tokens"),
    ("POST", "/page/access/add"): ("page.tokens",),
    ("POST", "/page/access/revoke"): ("page.tokens",),
    ("POST", "/page/as-of"): (),
    ("POST", "/page/language"): (),
    ("POST", "/page/undo"): (READS, "undo"),
    ("POST", "/page/conversation/end"): (READS, "end_session"),
    ("POST", "/page/conversation/consolidate"): (READS, "consolidate"),
    ("POST", "/page/conversation/off-record"): ("off_record",),
    ("POST", "/page/conversation/on-record"): ("on_record",),
    ("POST", "/page/inbox/decide"): (READS, "resolve"),
    ("POST", "/page/run/replay"): ("replay",),
    ("POST", "/page/run/accept"): (READS, "accept"),
    ("POST", "/page/entity/protect"): (READS, "update_entity"),
    ("POST", "/page/entity/name"): (READS, "update_entity"),
    ("POST", "/page/entity/merge"): (READS, "merge"),
    ("POST", "/page/entity/split"): (READS, "split"),
    ("POST", "/page/memory/keep"): (READS, "update"),
    **{
        ("POST", f"/page/memory/{verb}"): (READS, verb)
        for verb in ("correct", "confirm", "reinforce", "demote", "forget", "restore", "erase")
    },
}
"""What each page and form needs. A new one without a row fails the test."""
FIELDS = {
    "id": "nothing",
    "content": "x",
    "name": "x",
    "names": "x",
    "keep": "x",
    "other": "x",
    "item": "x",
    "run": "x",
}
FIELDS |= {"decision": "keep both", "session": "x", "change": "1", "at": "2026-01-01", "language": "en", "entity": "x"}
FORM = {"Origin": BASE, "Sec-Fetch-Site": "same-origin"}


def test_every_page_has_a_row() -> None:
    assert {(method, path) for method, path, _, _ in _PAGES} == set(NEEDS)


async def walked(at: House, trust: Trust, access: tuple[str, ...], *, name: str) -> list[str]:
    """Return the pages that are open to a token against the table, and the other way round."""
    secret = at.secret(name, owner="ann", trust=trust, access=access)
    caller = at.tokens.caller(secret)
    assert at.app.page is not None and caller is not None
    cookie = at.app.page.sessions.begin(caller, digest=digest(secret))  # type: ignore[attr-defined]
    csrf = at.app.page.sessions.of(cookie).csrf  # type: ignore[attr-defined]
    client = at.client(None, cookie=f"ricordo-7411={cookie}", **FORM)
    memory = at.client(at.secret(f"writer of {name}", owner="ann"))
    known = (await memory.post("/v1/remember", json={"content": "Sarah likes tea"})).json()["id"]
    wrong = []
    for (method, path), needed in NEEDS.items():
        if method == "GET":
            answer = await client.get(path, params={"id": "nothing", "q": "x"})
        else:
            id = known if path == "/page/memory/erase" else "nothing"
            answer = await client.post(path, data={**FIELDS, "id": id, "csrf": csrf})
        assert answer.status_code not in (401, 429, 500), (path, answer.text)
        wanted = all(expected(each, trust=trust, access=access) for each in needed)
        if (answer.status_code != 403) != wanted:
            wrong.append(f"{method} {path} {trust} {access}: {answer.status_code}, expected {wanted}")
    return wrong


async def test_every_page_and_form_obeys_the_table_for_every_token(tmp_path: Path) -> None:
    wrong: list[str] = []
    async with house(tmp_path / "me.db") as at:
        for number, (trust, access) in enumerate((trust, access) for trust in TRUSTS for access in TOKENS):
            wrong += await walked(at, trust, access, name=f"token {number}")
    assert wrong == [], "\n".join(wrong)
    assert len(NEEDS) * len(TRUSTS) * len(TOKENS) > 1_000
