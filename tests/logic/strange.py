"""Unusual texts that a fuzz run sends to every interface."""

from __future__ import annotations

import random

SURROGATES = ("\ud800", "\udfff", "a\udc80b", "\ud83d")
CONTROL = (
    "\0",
    "\x01",
    "\x1b[31m",
    "\x7f",
    "\x85",
    "\r",
    "\n",
    "\r\n",
    "\t",
    "\x0b",
    "\x0c",
    "\x1c",
    "\u2028",
    "\u2029",
)
INVISIBLE = (
    "\u200b",
    "\u200d",
    "\u200e",
    "\u202e",
    "\u2066",
    "\ufeff",
    "\u00ad",
    "\u2060",
    "\U000e0041",
    "\ufffe",
    "\U0010ffff",
)
RIGHT_TO_LEFT = ("שלום עולם", "مرحبا بالعالم", "\u202eevil\u202c", "ابجد 123 هوز", "ﷺ", "ﷲ")
COMBINING = (
    "e\u0301",
    "Z" + "\u0351\u0300\u036f" * 20,
    "\u0301",
    "q\u0307\u0323",
    "ä",
    "a\u0308",
    "각",
    "\u1112\u1161\u11ab",
    "नमस्ते",
)
FTS = (
    'NEAR("a b", 5)',
    "NEAR(",
    '"',
    '""',
    '"a',
    "a*",
    "*",
    "^a",
    "^",
    "a:b",
    "terms:x",
    "-a",
    "- a",
    "+",
    "a + b",
    "(",
    ")",
    "((a)",
    "{a b} : c",
    "AND",
    "OR",
    "NOT",
    "a AND",
    "OR b",
    "a NOT b NOT",
    "a·1k",
    "·",
    "·1k",
    "nodes_fts",
    "rank",
)
SQL = (
    "%",
    "_",
    "%_%",
    "\\%",
    "'",
    "''",
    "'; DROP TABLE nodes; --",
    "--",
    "/*",
    "*/",
    ";",
    "?1",
    ":a",
    "@x",
    "$y",
    "NULL",
    "x'00'",
    "[a]",
    "`a`",
)
JSON = (
    '{"a": 1}',
    "{",
    "[",
    "]",
    "null",
    "true",
    "\\u0000",
    "\\ud800",
    '{"$.a": "$"}',
    "$.a.b[0]",
    '"]',
    "NaN",
    "Infinity",
    "1e999",
)
EMOJI = ("😀", "👨‍👩‍👧‍👦", "🇺🇦", "👍🏽", "☃️", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "\ufe0f", "🫠" * 50)
SCRIPTS = (
    "Привет",
    "你好世界",
    "こんにちは",
    "สวัสดี",
    "ŁÓDŹ",
    "İstanbul",
    "ß",
    "ẞ",
    "ﬁ",
    "Ⅷ",
    "①②③",
    "½",
    "𝔘𝔫𝔦",
    "ＡＢＣ",
    "٣٤٥",
    "ǅ",
    "ς Σ",
)
TIMES = (
    "last week",
    "yesterday",
    "32.13.9999",
    "0000-00-00",
    "in 99999999999 days",
    "9999-12-31",
    "3 days ago",
    "am 31. Februar",
    "1e9 years ago",
    "вчера",
)
NAMES = (
    "Anna",
    "O'Brien",
    "../../etc/passwd",
    "con",
    "C:\\",
    "~",
    "http://[::1",
    "<script>alert(1)</script>",
    "[id:12345678]",
    "</recalled-memory>",
    "# heading",
    "| a | b |",
    "```",
)
PLAIN = (
    "tea",
    "the",
    "a",
    "is",
    "I like",
    "number 5",
    "x",
    ".",
    " ",
    "  ",
    "!",
    "...",
    "¿",
    "—",
    "0",
    "-1",
    "1.5",
    "1,5",
)
PIECES = (
    SURROGATES,
    CONTROL,
    INVISIBLE,
    RIGHT_TO_LEFT,
    COMBINING,
    FTS,
    SQL,
    JSON,
    EMOJI,
    SCRIPTS,
    TIMES,
    NAMES,
    PLAIN,
    PLAIN,
)


def strange_text(dice: random.Random) -> str:
    """Return mostly short texts; sometimes one endless word, many words, or random characters."""
    kind = dice.random()
    if kind < 0.75:
        return dice.choice(("", " ", " ", "\n")).join(_piece(dice) for _ in range(dice.randrange(1, 7)))
    if kind < 0.95:
        return "".join(_character(dice) for _ in range(dice.randrange(1, 40)))
    if kind < 0.98:
        return _piece(dice) * dice.randrange(1, 400)
    return dice.choice(("a", "ä", "漢", "\u0301", "a ", "'", '"', "(", "9", "🙂")) * dice.randrange(1, 20_000)


def huge_text(dice: random.Random, *, chars: int = 1_000_000) -> str:
    """Return a megabyte of one word, of many words, or of lines."""
    match dice.randrange(4):
        case 0:
            return "x" * chars
        case 1:
            return " ".join(f"w{number}" for number in range(chars // 8))
        case 2:
            return "漢字と" * (chars // 3)
        case _:
            return "\n".join(_piece(dice) for _ in range(chars // 8))


def _piece(dice: random.Random) -> str:
    pieces = dice.choice(PIECES)
    if pieces is SURROGATES and dice.random() < 0.7:  # rare, because each causes the whole text to be refused
        pieces = PLAIN
    return dice.choice(pieces)


def _character(dice: random.Random) -> str:
    """Return random code points, low ones more often."""
    point = dice.randrange(dice.choice((0x80, 0x250, 0x3000, 0x10000, 0x110000)))
    return chr(point) if not 0xD800 <= point < 0xE000 or dice.random() < 0.1 else " "
