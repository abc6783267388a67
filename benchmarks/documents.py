"""A document of 300 pages: what a new version embeds again, and whether questions find the passage and its page.

    python benchmarks/documents.py [--books FOLDER] [--out benchmarks/results/documents.json]

The manual is made up (benchmarks/documents.toml): 30 chapters of ten sections, of sentences from templates, with 40
facts among them. It is written as PDF, DOCX and Markdown. A second version differs in five places: a number, a sentence
put in, a sentence left out, a paragraph put in, and a paragraph rewritten. In the PDF everything behind a change moves.
Of each of the 40 questions it counts whether the passage with the fact, and its page or line, is among the first three.

At first each fact stood alone in a paragraph about other things (`--alone`): a needle in a haystack, which hardly any
manual is. Now it stands in a paragraph of three sentences on its subject. The questions are those of the beginning.

`--books` asks real books as well, each printed to PDF by a browser from its HTML: "The Rust Programming Language" as
it came with Rust in 2026 (A5, 1,012 pages), and "The Debian Administrator's Handbook" (17 by 24.5 cm) in English (304
pages) and French (313). The 40 questions on each (benchmarks/data/books) were written by people who knew nothing of
the search. A page number holds for that print only.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import platform
import random
import re
import sys
import tempfile
import textwrap
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.flows.document_files import pdf

from ricordo import Memory
from ricordo.encoding import worker

BOOKS = Path(__file__).parent / "data" / "books"
MANUAL = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_PARAGRAPHS = 7
_LINES, _WIDTH = 42, 84
Section = tuple[str, list[str]]
Chapter = tuple[str, list[Section]]


def manual(*, alone: bool = False) -> list[Chapter]:
    """Return the chapters with their sections, each with its paragraphs.

    Args:
        alone: whether each fact stands in a paragraph about other things, and not in one of its own subject.
    """
    chosen = random.Random(300)
    chapters = [
        (name, [(section, [_paragraph(chosen) for _ in range(_PARAGRAPHS)]) for section in MANUAL["sections"]])
        for name in MANUAL["chapters"]
    ]
    by_name = dict(chapters)
    for fact in MANUAL["facts"]:
        paragraphs = chosen.choice(by_name[fact["chapter"]])[1]
        place = chosen.randrange(len(paragraphs))
        if not alone:
            paragraphs.insert(place, fact["among"].format(fact["says"]))
            continue
        sentences = re.split(r"(?<=\.) ", paragraphs[place])
        sentences.insert(chosen.randint(1, len(sentences)), fact["says"])
        paragraphs[place] = " ".join(sentences)
    return chapters


def _paragraph(chosen: random.Random) -> str:
    return " ".join(_sentence(chosen) for _ in range(chosen.randint(3, 6)))


def _sentence(chosen: random.Random) -> str:
    role, role2 = chosen.sample(MANUAL["roles"], 2)
    parts = {name[:-1]: chosen.choice(MANUAL[name]) for name in ("things", "places", "times", "reasons")}
    role_first = role[0].upper() + role[1:]
    said = chosen.choice(MANUAL["sentences"])
    return said.format(Role=role_first, role=role, role2=role2, n=chosen.randint(12, 980), **parts)


def changed(chapters: Sequence[Chapter]) -> list[Chapter]:
    """Return the next version: it differs in five places."""
    new = [(name, [(section, list(paragraphs)) for section, paragraphs in sections]) for name, sections in chapters]
    before, after = MANUAL["changes"]["number"]
    for _, sections in new:
        for _, paragraphs in sections:
            paragraphs[:] = [each.replace(before, after) for each in paragraphs]
    by_name = dict(new)
    put_in = by_name["Lost property"][3][1]
    put_in[2] = f"{put_in[2]} {MANUAL['changes']['sentence']}"
    left_out = by_name["Engine room"][5][1]
    left_out[4] = left_out[4].partition(". ")[2]
    by_name["Navigation"][1][1].insert(3, MANUAL["changes"]["paragraph"])
    by_name["Winter operation"][7][1][2] = _paragraph(random.Random(5))
    return new


# the manual as files


def as_pdf(chapters: Sequence[Chapter]) -> bytes:
    """Return a PDF with a bookmark for each chapter; each chapter begins on a new page."""
    pages, marks = list[list[str]](), list[tuple[str, int]]()
    for name, sections in chapters:
        marks.append((name, len(pages) + 1))
        lines = [name]
        for section, paragraphs in sections:
            lines += [section, *(line for each in paragraphs for line in textwrap.wrap(each, _WIDTH))]
        pages += [lines[start : start + _LINES] for start in range(0, len(lines), _LINES)]
    whole = [
        ["Nordkyst Ferries: operations manual", *page, f"Page {number} of {len(pages)}"]
        for number, page in enumerate(pages, 1)
    ]
    return pdf(whole, outline=marks)


def as_docx(chapters: Sequence[Chapter]) -> bytes:
    """Return a DOCX with a page break before each section."""
    import docx

    document = docx.Document()
    for name, sections in chapters:
        document.add_heading(name, 1)
        for section, paragraphs in sections:
            document.add_heading(section, 2)
            for each in paragraphs:
                document.add_paragraph(each)
            document.add_page_break()
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def as_markdown(chapters: Sequence[Chapter]) -> bytes:
    """Return Markdown with one line for each paragraph."""
    lines = list[str]()
    for name, sections in chapters:
        lines += [f"# {name}", ""]
        for section, paragraphs in sections:
            lines += [f"## {section}", ""]
            for each in paragraphs:
                lines += [each, ""]
    return "\n".join(lines).encode()


FORMATS: Mapping[str, Callable[[Sequence[Chapter]], bytes]] = {"pdf": as_pdf, "docx": as_docx, "md": as_markdown}


def places(content: bytes, format: str) -> dict[str, str]:
    """Return where each fact stands in a file, read without the library: by its last words that stand on one line."""
    if format == "md":
        lines = content.decode().splitlines()
        return {
            fact["says"]: f"line {next(number for number, line in enumerate(lines, 1) if fact['says'] in line)}"
            for fact in MANUAL["facts"]
        }
    pages = _pages(content, format)
    joined = [" ".join(page.split()) for page in pages]
    found = {}
    for fact in MANUAL["facts"]:
        for number in range(len(joined)):
            here, overleaf = joined[number], joined[number + 1] if number + 1 < len(joined) else ""
            if fact["says"] in here or (fact["says"] in f"{here} {overleaf}" and fact["says"] not in overleaf):
                found[fact["says"]] = f"page {number + 1}"
                break
    return found


def _pages(content: bytes, format: str) -> list[str]:
    if format == "pdf":
        from pypdf import PdfReader

        texts = [page.extract_text().splitlines() for page in PdfReader(io.BytesIO(content)).pages]
        return [" ".join(lines[1:-1]) for lines in texts]
    import docx

    pages = [""]
    for paragraph in docx.Document(io.BytesIO(content)).paragraphs:
        pages[-1] += f" {paragraph.text}"
        if paragraph._p.xpath(".//w:br[@w:type='page']"):
            pages.append("")
    return pages


# measurement


class Counter:
    """Counts the passages that the background worker embeds."""

    def __init__(self) -> None:
        self.passages = 0
        self._embed = worker.embed_passages

    async def __call__(self, embedder: Any, texts: Sequence[Sequence[str]]) -> Any:
        self.passages += sum(map(len, texts))
        return await self._embed(embedder, texts)

    def taken(self) -> int:
        """Return how many were embedded since the last time."""
        passages, self.passages = self.passages, 0
        return passages


async def measure(format: str, folder: Path, counter: Counter, *, alone: bool) -> dict[str, Any]:
    """Return the figures of one format."""
    old, new = manual(alone=alone), changed(manual(alone=alone))
    path = folder / f"manual.{format}"
    first, second = FORMATS[format](old), FORMATS[format](new)
    path.write_bytes(first)
    async with Memory.open(folder / f"{format}.db") as memory:
        begun = time.perf_counter()
        added = await memory.add_document(path=path)
        stored_s = time.perf_counter() - begun
        await memory.settle()
        embedded = counter.taken()
        path.write_bytes(second)
        begun = time.perf_counter()
        report = await memory.add_document(path=path)
        replaced_s = time.perf_counter() - begun
        await memory.settle()
        again = counter.taken()
        path.write_bytes(first)
        back = await memory.add_document(path=path)
        await memory.settle()
        embedded_for_old = counter.taken()
        asked = await _ask(memory, places(first, format))
    return {
        "pages": added.document.pages,
        "passages": added.added,
        "embedded": embedded,
        "second version": {
            "added": report.added,
            "kept": report.kept,
            "moved": report.moved,
            "removed": report.removed,
            "embedded": again,
            "seconds": round(replaced_s, 2),
        },
        "first version again": {"added": back.added, "embedded": embedded_for_old},
        "seconds to store": round(stored_s, 2),
        **asked,
    }


async def _ask(memory: Memory, places: Mapping[str, str]) -> dict[str, Any]:
    found, placed, missed = 0, 0, list[str]()
    for fact in MANUAL["facts"]:
        hits = (await memory.search(fact["asked"], limit=3)).hits
        right = [hit for hit in hits if fact["says"] in " ".join(hit.content.split())]
        found += bool(right)
        if any(_stands_there(hit.place, places[fact["says"]]) for hit in right):
            placed += 1
        else:
            missed.append(f"{fact['asked']} {[hit.place for hit in right]} {places[fact['says']]}")
    return {
        "questions": len(MANUAL["facts"]),
        "passage in 3": found,
        "passage and place in 3": placed,
        "missed": missed,
    }


async def read_book(path: Path, folder: Path) -> dict[str, Any]:
    """Return how many questions about a book find their passage, and its page, among three."""
    lines = (BOOKS / f"{path.stem}.jsonl").read_text(encoding="utf-8").splitlines()
    questions = list(map(json.loads, lines))
    found, placed, missed = 0, 0, list[str]()
    async with Memory.open(folder / f"{path.stem}.db") as memory:
        added = await memory.add_document(path=path)
        await memory.settle()
        for each in questions:
            hits = (await memory.search(each["asked"], limit=3)).hits
            right = [hit for hit in hits if each["says"].casefold() in " ".join(hit.content.split()).casefold()]
            found += bool(right)
            placed += any(_stands_there(hit.place, f"page {each['page']}") for hit in right)
            missed += [] if right else [each["asked"]]
    return {
        "pages": added.document.pages,
        "passages": added.added,
        "questions": len(questions),
        "passage in 3": found,
        "passage and place in 3": placed,
        "missed": missed,
    }


def _stands_there(shown: str, place: str) -> bool:
    """Return whether a place that is shown is that place, or two pages of which it is one."""
    kind, number = place.split()
    found = re.fullmatch(rf".*, {kind}s? (\d+)(?:-(\d+))?", shown)
    return found is not None and int(found[1]) <= int(number) <= int(found[2] or found[1])


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--formats", nargs="*", default=list(FORMATS))
    parser.add_argument("--alone", action="store_true", help="facts stand in paragraphs about other things")
    parser.add_argument("--books", type=Path, help="a folder of PDFs, named like the files of questions")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    counter = Counter()
    worker.embed_passages = counter  # type: ignore[assignment]
    with tempfile.TemporaryDirectory() as folder:
        results = {each: await measure(each, Path(folder), counter, alone=options.alone) for each in options.formats}
        books = sorted(options.books.glob("*.pdf")) if options.books else []
        read = {each.stem: await read_book(each, Path(folder)) for each in books}
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    report = {"machine": machine, "formats": results, "books": read}
    text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
    print(text)
    if options.out:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
