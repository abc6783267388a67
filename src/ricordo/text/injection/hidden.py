"""Text that does not show: invisible characters, letters of another script, wide letters. Pure."""

from __future__ import annotations

import re
import unicodedata

# The tag characters repeat ASCII invisibly. After a black flag they spell a region, as in the flag of Scotland.
_TAGS = re.compile("[\U000e0020-\U000e007e]{2,}")
_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007f]+")
_TAG_OFFSET = 0xE0000
_MOST_SHOWN = 8
"""A tag sequence with fewer letters than this says nothing."""

# What takes no room and joins nothing: zero-width spaces and joiners of words, marks of direction, soft hyphens, tags,
# variation selectors by which bytes are smuggled. The joiners of Persian and of emoji (200C, 200D) and the selectors
# of emoji (FE0E, FE0F) are kept.
INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ufe00-\ufe0d\U000e0000-\U000e0fff]"
)
_JOINERS = re.compile(r"(?<=[A-Za-zА-Яа-яЁё])[\u200c\u200d](?=[A-Za-zА-Яа-яЁё])")
_SMUGGLED = re.compile("[\u202d\u202e]|(?<=\\w)[\u200b\u2060\ufeff](?=\\w)")

_LATIN_LIKE = dict(zip("аеорсхукмтвніѕј", "aeopcxykmtbhisj", strict=True))
_CYRILLIC_LIKE = {latin: cyrillic for cyrillic, latin in _LATIN_LIKE.items() if cyrillic not in "іѕј"}
_TO_LATIN = str.maketrans(_LATIN_LIKE)
_TO_CYRILLIC = str.maketrans(_CYRILLIC_LIKE)
_MIXED = re.compile(r"\b(?=[^\W\d_]*[a-z])(?=[^\W\d_]*[а-яёіѕј])[^\W\d_]+\b")
_LATIN, _CYRILLIC = re.compile("[a-z]"), re.compile("[а-яёіѕј]")
_BLANKS = re.compile(r"[^\S\n]+")


def revealed(text: str) -> str:
    """The text as it means to be read, in lower case: what was hidden shows, look-alike letters are those they stand
    for, blanks are single; lines stay.

    >>> revealed("Ig\\u200bnore  previ\\u043eus")
    'ignore previous'
    """
    if text.isascii():
        return _BLANKS.sub(" ", text.lower())
    told = hidden_text(text)
    plain = _JOINERS.sub("", INVISIBLE.sub("", text))
    folded = unicodedata.normalize("NFKC", plain).lower()
    if _LATIN.search(folded) and _CYRILLIC.search(folded):
        folded = _MIXED.sub(lambda word: _one_script(word.group()), folded)
    return _BLANKS.sub(" ", f"{folded}\n{told.lower()}" if told else folded)


def hidden_text(text: str) -> str:
    """What tag characters spell; "" where there are none but those of flags."""
    if text.isascii():
        return ""
    found = "".join(_TAGS.findall(_FLAG.sub("", text)))
    return "".join(chr(ord(char) - _TAG_OFFSET) for char in found)


def hides_text(text: str) -> bool:
    """Whether words are written in characters that nobody sees. No keyboard and no editor does that by itself."""
    return len(hidden_text(text)) >= _MOST_SHOWN


def is_disguised(text: str) -> bool:
    """Whether words are cut by characters without width, turned round, or spelled in letters of two scripts."""
    if text.isascii():
        return False
    return _SMUGGLED.search(text) is not None or _MIXED.search(text.lower()) is not None


def _one_script(word: str) -> str:
    """A word of letters of two scripts in the one that all of it can be written in, if there is one."""
    latin = word.translate(_TO_LATIN)
    if latin.isascii():
        return latin
    cyrillic = word.translate(_TO_CYRILLIC)
    return word if re.search("[a-z]", cyrillic) else cyrillic
