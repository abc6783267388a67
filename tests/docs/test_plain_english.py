"""What we write is plain English: a short list of words stays out of it.

The check covers documentation, SQL and source as a whole, and the comments and docstrings of tests, whose data may say
anything.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

AVOIDED = (
    "whom",
    "whomever",
    "whoever",
    "whosoever",
    "anew",
    "thereof",
    "hereby",
    "wherein",
    "betwixt",
    "milliards?",
    "nobody does so",
    "to be had",
    "cannot be had",
    "what is told",
    "is no JSON",
    "is no list",
)
"""Better: who, the caller, again, rebuild, of it, in which, billion, unavailable, is not JSON."""

DATA = (
    "src/ricordo/consolidation/prompts",  # a changed prompt is a new version
    "src/ricordo/interfaces/demo",
    "src/ricordo/models/embedding/data",
    "src/ricordo/retrieval/generic_prompts.txt",
    "src/ricordo/text/languages",
    "tests/docs/test_plain_english.py",
    "tests/fixtures",
    "tests/golden/prompts.txt",
)
"""Word lists, prompts and example conversations."""

ALLOWED = (
    "You talk with your user, whom you may know from earlier conversations.",  # a prompt
    "-- what a person says later is said anew",  # inside a CREATE statement, which every store records
)

_AVOIDED = re.compile(rf"\b(?:{'|'.join(AVOIDED)})\b", re.IGNORECASE)
_PATTERNS = ("src/**/*", "docs/**/*.md", "tests/**/*.py", "tests/golden/*", "tools/*.py", "benchmarks/*.py", "*.md")


def _is_ours(path: Path) -> bool:
    name = path.relative_to(ROOT).as_posix()
    is_data = name.startswith(DATA) and not name.endswith(("languages/__init__.py", "languages/schema.py"))
    return path.suffix in (".py", ".md", ".sql", ".txt") and not is_data


FILES = sorted({path for pattern in _PATTERNS for path in ROOT.glob(pattern) if _is_ours(path)} | {ROOT / "Makefile"})


def _comments_and_docstrings(program: str) -> str:
    tokens = tokenize.generate_tokens(io.StringIO(program).readline)
    comments = [token.string for token in tokens if token.type == tokenize.COMMENT]
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = (node for node in ast.walk(ast.parse(program)) if isinstance(node, documented))
    return "\n".join([*comments, *(ast.get_docstring(node) or "" for node in nodes)])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_file_uses_words_that_every_reader_knows(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if path.is_relative_to(ROOT / "tests") and path.suffix == ".py":
        text = _comments_and_docstrings(text)
    for sentence in ALLOWED:
        text = text.replace(sentence, "")
    assert [line.strip() for line in text.splitlines() if _AVOIDED.search(line)] == []


def test_the_check_finds_a_word_in_a_comment_and_a_docstring() -> None:
    program = '"""Rebuilt anew."""\nx = "whom"  # whoever\n'
    assert _AVOIDED.findall(_comments_and_docstrings(program)) == ["whoever", "anew"]
