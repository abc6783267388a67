"""Which category a plain statement belongs to, by rule: it decides how long the memory lives when nobody says."""

from __future__ import annotations

import re

from ricordo.model import Category

_PATTERNS: tuple[tuple[Category, str], ...] = (
    (
        "task",
        r"\b(?:need(?:s)? to|have to|has to|must not forget|don'?t forget to|remember to|remind me|to-?do|deadline)\b"
        r"|\b(?:нужно|надо|не забыть|напомни|должна? (?:с|по|за|от)\w+)\b",
    ),
    (
        "preference",
        r"\b(?:prefer|prefers|like|likes|love|loves|hate|hates|dislike|dislikes|enjoy|enjoys|favou?rite|allergic|"
        r"vegetarian|vegan|can'?t stand|rather have)\b"
        r"|\b(?:люб(?:лю|ит|им|ят)|нрав(?:ится|ятся)|обожа(?:ю|ет)|ненави(?:жу|дит)|предпочита(?:ю|ет)|"
        r"любим\w+|аллерги\w+|терпеть не мо\w+)\b",
    ),
    (
        "relationship",
        r"\b(?:my|his|her|our|their|\w+'s) (?:wife|husband|partner|girlfriend|boyfriend|mother|mom|mum|father|dad|"
        r"sister|brother|son|daughter|child|aunt|uncle|cousin|grand\w+|friend|boss|colleague|neighbou?r|dog|cat|pet)"
        r"(?:'s)? (?:is|name|are|was)\b"
        r"|\bis (?:my|his|her|our) (?:wife|husband|partner|mother|father|sister|brother|son|daughter|friend|boss)\b"
        r"|\b(?:моя|мой|мою|моего|наша|наш|его|её|ее) (?:жен\w|муж\w?|мам\w|мать|пап\w|отец|сестр\w|брат\w?|сын\w?|"
        r"доч\w+|т[её]т\w|дяд\w|друг|подруг\w|начальни\w+|сосед\w*|собак\w|кошк\w|кот)\b",
    ),
    (
        "event",
        r"\b(?:yesterday|today|tonight|last (?:night|week|month|weekend)|this morning|"
        r"on (?:mon|tues|wednes|thurs|fri|satur|sun)day)\b"
        r"|\b(?:вчера|сегодня|позавчера|на прошлой неделе|в прошл\w+)\b",
    ),
    (
        "context",
        r"\b(?:currently|right now|at the moment|working on|these days)\b|\b(?:сейчас|в данный момент|пока что)\b",
    ),
    (
        "identity",
        r"\b(?:my name is|i am|i'm|i live|i work|i was born|works? (?:as|at|for)|lives? in|born (?:in|on)|years old)\b"
        r"|\b(?:меня зовут|я жив\w|я работа\w+|работа(?:ет|ю)|жив(?:ет|ёт|у)|родил(?:ся|ась)|мне \d+ (?:лет|год\w?))\b",
    ),
)
_RULES = tuple((category, re.compile(pattern, re.IGNORECASE)) for category, pattern in _PATTERNS)


def infer_category(content: str) -> Category:
    """The first rule that fits, from the most to the least telling; `knowledge` when none does."""
    start = content[:1_000]
    return next((category for category, pattern in _RULES if pattern.search(start)), "knowledge")
