"""The texts of the page in every language, and how texts of memories are shown."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jinja2", reason="the extra `server` is not installed")

from hypothesis import given
from hypothesis import strategies as st

from ricordo.interfaces.page.rendering import LANGUAGES, assets, difference, language_of, marked, shown, texts

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_every_text_with_its_values(language: str) -> None:
    english, own = texts("en"), texts(language)
    assert set(own) == set(english)
    for key, text in english.items():
        assert set(re.findall(r"\{\w+\}", own[key])) == set(re.findall(r"\{\w+\}", text)), key
        assert own[key].strip() == own[key] != ""


def test_every_text_that_a_template_names_exists() -> None:
    folder = ROOT / "src/ricordo/interfaces/page"
    files = [*folder.rglob("*.html"), *folder.glob("*.py")]
    named = {
        key
        for file in files
        for key in re.findall(r"""\bt(?:exts)?\(["']([a-z_]+\.[a-z_]+)["'][,)]""", file.read_text("utf-8"))
    }
    assert len(named) > 150
    assert named - set(texts("en")) == set()


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("", "en"),
        ("ru-RU,ru;q=0.9,en;q=0.8", "ru"),
        ("fr,de;q=0.5,en;q=0.4", "de"),
        ("en;q=0.1,de;q=x", "de"),
        (";;,,", "en"),
    ],
)
def test_the_language_is_that_of_the_browser(accepted: str, language: str) -> None:
    assert language_of(accepted) == language


@given(st.text(st.characters(codec="utf-8"), max_size=300), st.text(st.characters(codec="utf-8"), max_size=300))
def test_a_text_is_never_markup_and_never_lost(one: str, other: str) -> None:
    for html in (shown(one), marked(one, frozenset(("a", "b"))), difference(one, other)):
        tags = set(re.findall(r"<[^>]*>", str(html)))
        assert all(
            re.fullmatch(r'</?(span|mark|ins|del)( class="(ghost|cut)")?( title="[^"<>]*")?>', tag) for tag in tags
        )
    visible = re.sub(r"[^\w]", "", re.sub(r"<span.*?</span>", "", str(shown(one))))
    assert len(visible) <= 10 * len(one) + 10


def test_hidden_characters_are_named() -> None:
    html = str(shown("pay\u202eees\u200b now \U000e0068\U000e0069\U000e0068\U000e0069 a" + "\u0301" * 10))
    assert "U+202E" in html and "U+200B" in html and "hihi" in html and "+7" in html
    assert "RIGHT-TO-LEFT OVERRIDE" in html
    assert str(shown("👨‍👩‍👧 می‌روم naïve\nline")) == "👨‍👩‍👧 می‌روم naïve\nline"


def test_the_libraries_are_those_that_were_published() -> None:
    done = subprocess.run(
        [sys.executable, "tools/vendor_page.py", "--check"], cwd=ROOT, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    licences = {path.name for path in (ROOT / "src/ricordo/interfaces/page/static/vendor").glob("*.LICENSE")}
    assert licences == {"htmx.LICENSE", "sigma.LICENSE", "graphology.LICENSE", "uplot.LICENSE"}
    assert not [name for name, (body, _) in assets().items() if b"sourceMappingURL" in body]
