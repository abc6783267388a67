"""Documents for tests: a PDF and a DOCX with given pages, as other programs write them."""

from __future__ import annotations

import io
import zlib
from collections.abc import Sequence

_A4 = "[0 0 595 842]"
_LINES = 56


def pdf(pages: Sequence[Sequence[str]], *, outline: Sequence[tuple[str, int]] = (), encrypted: bool = False) -> bytes:
    """Return a PDF with these lines on its pages.

    Args:
        outline: (title, number of the page) of each bookmark.
    """
    count = len(pages)
    first_page, first_text, first_mark = 4, 4 + count, 4 + 2 * count
    kids = " ".join(f"{first_page + number} 0 R" for number in range(count))
    marks = f" /Outlines {first_mark} 0 R" if outline else ""
    objects = [
        f"<< /Type /Catalog /Pages 2 0 R{marks} >>".encode(),
        f"<< /Type /Pages /Kids [{kids}] /Count {count} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    objects += [
        f"<< /Type /Page /Parent 2 0 R /MediaBox {_A4} /Contents {first_text + number} 0 R"
        " /Resources << /Font << /F1 3 0 R >> >> >>".encode()
        for number in range(count)
    ]
    objects += [_stream(_shown(lines)) for lines in pages]
    if outline:
        last = first_mark + len(outline)
        objects.append(
            f"<< /Type /Outlines /First {first_mark + 1} 0 R /Last {last} 0 R /Count {len(outline)} >>".encode()
        )
        for place, (title, page) in enumerate(outline, 1):
            around = f" /Prev {first_mark + place - 1} 0 R" if place > 1 else ""
            around += f" /Next {first_mark + place + 1} 0 R" if place < len(outline) else ""
            target = f"[{first_page + page - 1} 0 R /XYZ 0 842 0]"
            objects.append(f"<< /Title ({title}) /Parent {first_mark} 0 R /Dest {target}{around} >>".encode())
    return _file(
        objects, trailer=" /Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O (x) /U (x) >>" if encrypted else ""
    )


def _shown(lines: Sequence[str]) -> str:
    escaped = (line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)") for line in lines)
    return "BT /F1 11 Tf 14 TL 60 800 Td " + " ".join(f"({line}) Tj T*" for line in escaped) + " ET"


def _stream(text: str) -> bytes:
    packed = zlib.compress(text.encode("cp1252", "replace"))
    return b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(packed), packed)


def _file(objects: Sequence[bytes], *, trailer: str) -> bytes:
    out = io.BytesIO()
    out.write(b"%PDF-1.5\n")
    places = []
    for number, content in enumerate(objects, 1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, content))
    start = out.tell()
    out.write(f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode())
    out.write("".join(f"{place:010} 00000 n \n" for place in places).encode())
    out.write(f"trailer << /Size {len(objects) + 1} /Root 1 0 R{trailer} >>\nstartxref\n{start}\n%%EOF\n".encode())
    return out.getvalue()


def laid_out(paragraphs: Sequence[str], *, width: int = 88, heading: str = "") -> list[list[str]]:
    """Return the lines of paragraphs page by page, as a word processor lays them out, with running lines."""
    import textwrap

    lines = [line for each in paragraphs for line in textwrap.wrap(each, width)]
    pages = [lines[start : start + _LINES - 4] for start in range(0, len(lines), _LINES - 4)]
    return [[heading, *page, f"Page {number} of {len(pages)}"] for number, page in enumerate(pages, 1)]
