"""Browsers for tests: what they send of themselves, and sessions of several owners."""

from __future__ import annotations

import re
from collections.abc import Mapping

import httpx

from ricordo.interfaces.call import Caller
from tests.interfaces.serving import BASE, House

OWN = {"Origin": BASE, "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "navigate"}


class Browser:
    """A browser with its cookies, which sends what a browser sends."""

    def __init__(self, at: House, **headers: str) -> None:
        self.client = at.client(None, **headers)

    async def open(self, path: str, **headers: str) -> httpx.Response:
        """Follow a link or type an address."""
        return await self.client.get(path, headers={"Sec-Fetch-Site": "none", **headers})

    async def send(self, path: str, fields: Mapping[str, str], **headers: str) -> httpx.Response:
        """Submit a form of our own page."""
        return await self.client.post(path, data=dict(fields), headers={**OWN, **headers})

    async def csrf(self, path: str = "/") -> str:
        """Return the secret of the forms on a page."""
        found = re.search(r'name="csrf" value="([^"]+)"', (await self.open(path)).text)
        assert found is not None
        return found[1]

    async def act(self, path: str, **fields: str) -> httpx.Response:
        """Fill in a form and follow where it leads."""
        answer = await self.send(path, {"csrf": await self.csrf(), **fields})
        return await self.open(answer.headers["location"]) if answer.status_code == 303 else answer


async def signed_in(at: House, caller: Caller | None = None) -> Browser:
    """Return the browser of the person who started the server."""
    assert at.app.page is not None
    browser = Browser(at)
    answer = await browser.open(at.app.page.key(caller or Caller(trust="user")))
    assert answer.status_code == 303, answer.text
    return browser
