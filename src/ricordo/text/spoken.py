"""A message as the sentences somebody says, for the rules that learn from what is said plainly."""

from __future__ import annotations

import re

MAX_CHARS = 5_000
"""What is said plainly is said early; the rest of a document is not looked at."""

SENTENCE = re.compile(
    r"(?:[^.!?\n…]|\.(?=\w)|(?<=\b[A-ZА-Я])\.|(?<=\b(?:Dr|Mr|Ms|St|vs|No))\.|(?<=\b(?:Mrs|e\.g))\.)+[.!?…]*"
)
"""A piece of a text up to its full stop; that of an abbreviation or a number ends none."""
