"""What is worth keeping of a message, by rule: what is said so plainly that it needs no model. English and Russian; pure.

Conservative, for junk is worse than a gap: what waits for a model stays an episode and is found all the same. A sentence
is kept whole, as it was said. A question, a quotation, a guess or a wish teaches nothing, nor does small talk ("I love
it", "I think so").
"""

# ruff: noqa: E501  # patterns read best on one line
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ricordo.model import Category, NodeType
from ricordo.times import mentions_time

Kind = Literal["fact", "preference", "opinion", "decision", "commitment"]

MAX_CHARS = 5_000
"""What is said plainly is said early; the rest of a document is not looked at."""

_LEAST_WORDS, _MOST_WORDS = 3, 60
_OPENING = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """A statement worth keeping: the sentence, without what leads up to it, and what kind of knowledge it is."""

    kind: Kind
    text: str

    @property
    def type(self) -> NodeType:
        return "opinion" if self.kind == "opinion" else "semantic"

    @property
    def category(self) -> Category | None:
        """None where the words of the statement tell."""
        known: dict[Kind, Category] = {"preference": "preference", "commitment": "task", "decision": "knowledge"}
        return known.get(self.kind)


def plainly_said(text: str) -> tuple[Plain, ...]:
    """The statements of a message that are worth keeping, in order, each once.

    >>> [(found.kind, found.text) for found in plainly_said("Well, I love hiking. Do you? I think so.")]
    [('preference', 'I love hiking')]
    """
    found = (_statement(sentence) for sentence in _sentences(text[:MAX_CHARS]))
    return tuple(dict.fromkeys(each for each in found if each is not None))


def _statement(sentence: str) -> Plain | None:
    if told := _TOLD.match(sentence):
        return _kept("fact", sentence[told.end() :])
    said = _LEAD.sub("", sentence)
    if _VAGUE.search(" ".join(said.split()[:_OPENING])):
        return None
    for kind, pattern in _CUES:
        if pattern.search(said):
            return _kept(kind, said)
    is_promise = _WILL.match(said) is not None and mentions_time(said) and not _UNLIKELY.search(said)
    return _kept("commitment", said) if is_promise else None


def _kept(kind: Kind, said: str) -> Plain | None:
    said = said.strip(" ,:;—–-")
    if not _LEAST_WORDS <= len(said.split()) <= _MOST_WORDS:
        return None
    return Plain(kind=kind, text=said[0].upper() + said[1:])


_SENTENCE = re.compile(
    r"(?:[^.!?\n…]|\.(?=\w)|(?<=\b[A-ZА-Я])\.|(?<=\b(?:Dr|Mr|Ms|St|vs|No))\.|(?<=\b(?:Mrs|e\.g))\.)+[.!?…]*"
)
_DOUBTFUL = re.compile(
    r"\b(?:if|unless|maybe|perhaps|might|wish|imagine|suppose|pretend|would(?!\s+rather)|could|should|not sure|"
    r"если|бы|может быть|наверное|возможно|кажется|вроде|допустим|представь\w*)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"^\s*[\"«“„>]|[\"“”„]")


def _sentences(text: str) -> Iterator[str]:
    for part in _SENTENCE.finditer(text):
        sentence = part.group().strip()
        if not (sentence.endswith("?") or _QUOTED.search(sentence) or _DOUBTFUL.search(sentence)):
            yield sentence.rstrip(".!… ")


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


# What speaks of something that only the messages around it name.
_VAGUE = re.compile(
    r"\b(?:it(?!['’]s\s+\w+\s+(?:to|that)\b)|them|this(?!\s+(?:week|month|year|summer|spring|fall|autumn|winter|weekend))|these|those|"
    r"это(?!й|го|му)|эт[иу]|этих|этот|их)\b|\bto$",
    re.IGNORECASE,
)
# What opens a sentence and says nothing.
_LEAD = re.compile(
    r"^(?:(?:and|so|but|well|oh|ok(?:ay)?|yes|yeah|yep|no|hi|hey|hello|wow|haha|lol|thanks|by the way|btw|also|actually|"
    r"honestly|frankly|personally|basically|anyway|you know|to be honest|"
    r"а|и|но|ну|да|нет|ой|привет|кстати|вообще|честно говоря|если честно|знаешь|в общем)[,:!—–-]*\s+)+",
    re.IGNORECASE,
)
# Told to be kept: what follows is the fact.
_TOLD = re.compile(
    r"^(?:(?:please|пожалуйста),?\s+)?"
    r"(?:(?:remember|note|keep in mind|don['’]t forget|make a note|for the record)(?::|\s+that)\s+"
    r"|(?:(?:quick|one|two|just|important)\s+)?(?:facts?|fyi|confirmed|reminder)\b[^:.]{0,40}:\s*"
    r"|(?:запомни(?:те)?|запиши(?:те)?|имей(?:те)? в виду|не забудь(?:те)?|учти(?:те)?)(?:,?\s+что|:|,)\s+"
    r"|(?:(?:два|краткая|важный)\s+)?(?:факты?|факта|справка|для справки|подтверждено|напоминание)\b[^:.]{0,40}:\s*)",
    re.IGNORECASE,
)

# Somebody as the subject: a pronoun or a name, with what may stand between them and the verb.
_NAME = r"(?-i:\b[A-Z][\w-]+(?:\s+[A-Z][\w-]+)?)"
_WHO = rf"(?:\b(?:i|we|he|she|they|the user|user)|{_NAME})"
_WHO_RU = r"(?:\b(?:я|мы|он|она|они|user|пользователь)|(?-i:\b[A-ZА-ЯЁ][\w-]+(?:\s+[A-ZА-ЯЁ][\w-]+)?))"
_HOW = (
    r"(?:\s+(?:really|strongly|absolutely|much|always|usually|generally|still|also|just|truly|totally|do|simply|only))*"
)
_HOW_RU = r"(?:\s+(?:очень|всегда|обычно|больше всего|настоятельно|просто|тоже|решительно|категорически|по-прежнему))*"
# "I love it", "I like the colours": of nothing that the sentence names.
_NAMED = (
    r"(?!\s+(?:it|this|that|you|your|how|the way|them|these|those|when|so|him|her|his|their|its)\b)"
    r"(?!\s+(?:the|all the)\s+(?-i:[a-z]))"
)
_NAMED_RU = r"(?!\s+(?:это|этот|эту|эти|такое|тебя|вас|его|её|их|как|когда|твой|твою|твоё|твои)\b)"
_MANY = r"(?:prefer|love|like|enjoy|hate|dislike|adore|don['’]t (?:like|eat|drink)|never (?:eat|drink))"
_ONE = r"(?:prefers|loves|likes|enjoys|hates|dislikes|adores|doesn['’]t (?:like|eat|drink)|never (?:eats|drinks))"
_ANYBODY = r"(?:can['’]?t stand|cannot stand|would rather|['’]d rather|(?:am|['’]m|is|are|['’]re)\s+(?:(?:really|very)\s+)?(?:fond of|an? (?:big |huge )?fan of|crazy about))"
_LIKES_RU = (
    r"(?:не\s+)?(?:предпочита(?:ю|ет|ем|ют)|люблю|любит|любим|любят|обожа(?:ю|ет|ем|ют)|ненави(?:жу|дит|дим|дят)|"
    r"терпеть не мо(?:гу|жет|гут)|не (?:ем|ест|пью|пь[её]т))"
)
# An opinion of something the sentence names, or of what is right in general.
_SOMETHING = (
    r"(?!\s+(?:so|not|about|of|in|i|we|you|your|he|she|they|that|this|these|those|myself)\b)"
    r"(?!\s+it\b(?!['’]s\s+(?:important|better|best|wrong|right|good|bad|essential|crucial)\s+(?:to|that)\b))"
)
_SOMETHING_RU = r"(?!\s+(?:так|об?|над|в|я|мы|ты|вы|он|она|они|это|себя)\b)"
_FAMILY = (
    r"(?:wife|husband|partner|girlfriend|boyfriend|son|daughter|sister|brother|mother|father|mom|mum|dad|dog|cat|boss)"
)
_FAMILY_RU = r"(?:сын|дочь|дочка|сестра|брат|жена|муж|собака|кошка|кот|дети|ребёнок|двое детей|трое детей)"
_DATED = r"(?:birthday|anniversary|deadline|appointment|wedding|exam|flight|interview|surgery|due date|defen[cs]e)"
_DATED_RU = r"(?:день рождения|годовщина|дедлайн|срок|при[её]м|свадьба|экзамен|рейс|собеседование|операция|защита)"
_DAY = r"(?:[^.]{0,40}\b(?:\d|january|february|march|april|may|june|july|august|september|october|november|december|(?:mon|tues|wednes|thurs|fri|satur|sun)day))"
_DAY_RU = r"(?:[^.]{0,40}(?:\d|понедельник|вторник|сред[уы]|четверг|пятниц|суббот|воскресень))"

_CUES: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("commitment", _any(
        rf"^(?:{_WHO}{_HOW}(?:\s+(?:have|has|am|is)|['’]ve|['’]m)?\s+)?(?:promise|promised|committed to|committing to|commit to)\b"
        r"(?!\s+(?:me|myself)\b)",
        rf"^(?:{_WHO_RU}{_HOW_RU}\s+)?(?:обеща(?:ю|ем|л|ла|ли)|пообещал[аи]?|обязу(?:юсь|емся)|обязал(?:ся|ась|ись)|"
        r"беру на себя|берём на себя|взял[аи]? на себя)\b",
    )),
    ("decision", _any(
        rf"^(?:{_WHO}{_HOW}(?:\s+(?:have|has)|['’]ve|['’]s)?(?:\s+(?:finally|just|all|already|talked about it and))*\s+)?"
        r"(?:decided|chose|agreed (?:to|on)|agreed:|settled on|opted)\b",
        r"^(?:the )?decision(?: made)?\b[^.]{0,40}:",
        r"^(?:мы |я |она? |они )?(?:обсудили это и |наконец |уже )*(?:решил[аи]?|выбрал[аи]?|договорились|остановил(?:ся|ась|ись) на)\b",
        rf"^{_WHO_RU}\s+(?:решил[аи]?|выбрал[аи]?)\b",
        r"^(?:было )?принято решение\b|^решено\b",
    )),
    ("preference", _any(
        rf"^(?:[^,.]{{0,40}}\b(?:told|says|said)\b[^,.]{{0,20}}\s)?(?:(?:i|we|they){_HOW}\s+{_MANY}|(?:he|she|(?:the )?user|{_NAME}){_HOW}\s+{_ONE}|{_WHO}{_HOW}\s*{_ANYBODY})\b{_NAMED}",
        rf"\b(?:my|his|her|our|{_FAMILY}['’]s)\s+favou?rite\s+[\w\s]{{1,40}}\b(?:is|are)\b",
        rf"^{_WHO_RU}(?:\s+сказал[аи]?,\s+что)?{_HOW_RU}\s+{_LIKES_RU}\b{_NAMED_RU}",
        r"^(?:мне|нам|ему|ей|им)\s+(?:очень\s+|больше\s+|совсем\s+|не\s+)*нрав(?:ится|ятся)\b(?!\s+(?:это|эта|этот|твой|твоя|твоё|твои|как|что)\b)",
        r"^(?:мой|моя|моё|мое|мои|наш|наша)\s+любим\w+\s+\w+",
        rf"^[Лл]юблю\b{_NAMED_RU}|^[Пп]редпочитаю\b|^[Нн]енавижу\b{_NAMED_RU}",
    )),
    ("opinion", _any(
        rf"^i{_HOW}\s+(?:think|believe|feel that|find|doubt|consider)(?:\s+that)?\b{_SOMETHING}(?=(?:\W+\w+){{4}})",
        r"^(?:in my (?:opinion|view)|my (?:take|view|opinion)(?: (?:on|is)\b|:)|if you ask me)",
        r"^i(?:['’]m|\s+am)\s+(?:(?:very|deeply|rather)\s+)?(?:skeptical|sceptical|convinced|of the opinion)\b",
        rf"^(?:я\s+)?(?:думаю|считаю|полагаю|нахожу|убежд[её]н[аы]?)\b,?(?:\s+что)?{_SOMETHING_RU}(?=(?:\W+\w+){{4}})",
        r"^(?:по-моему|на мой взгляд|мой взгляд на|мо[её] мнение)\b",
        r"^я\s+скептически\b",
    )),
    ("fact", _any(
        r"^my name is\s+\w|^call me\s+(?-i:[A-Z])",
        r"^(?:i|we)\s+(?:live|lived|work|grew up)\s+(?:in|at|as|for|near|with)\b|^i(?:['’]m|\s+am)\s+(?:from|allergic to)\b",
        r"^i\s+was\s+born\b|^i(?:['’]m|\s+am)\s+(?:a|an)\s+(?!bit|little|lot|huge|big|mess|fan|fool|few)[\w-]+(?:\s+[\w-]+){0,3}$",
        r"^(?:i|we)(?:\s+have|['’]ve\s+got)\s+(?:an?|two|three|four|five|no)\s+(?:[\w-]+\s+){0,2}"
        r"(?:sons?|daughters?|kids?|children|brothers?|sisters?|dogs?|cats?|siblings?|allerg\w+)\b",
        rf"^my\s+{_FAMILY}(?:['’]s name)?\s+is\s+(?:called\s+|named\s+)?(?:(?-i:[A-Z])|an?\s|from\s|allergic|in\s)",
        rf"^(?:my|our|(?:the\s+)?(?-i:[A-Z])[\w\s'’-]{{1,60}})\s*{_DATED}\s+(?:is|starts|begins)\s+{_DAY}",
        r"^меня зовут\s+\w|^я\s+(?:живу|работаю|родил(?:ся|ась)|вырос(?:ла)?)\b|^я\s+(?:родом\s+)?из\s+(?-i:[А-ЯЁ])",
        rf"^у (?:меня|нас)\s+(?:есть\s+|аллергия на\s|(?:\w+\s+){{0,2}}{_FAMILY_RU}\b)",
        rf"^(?:мой|моя|моё|мое|наш|наша|(?-i:[A-ZА-ЯЁ])[\w\s-]{{1,60}})\s*{_DATED_RU}[\w\s]{{0,40}}\s+(?:—|–|-|состоится|начинается|в|назначен\w*)\s*{_DAY_RU}",
    )),
)  # fmt: skip
_WILL = re.compile(r"^(?:i['’]ll|i\s+will|we['’]ll|we\s+will|i['’]m\s+going\s+to)\s+\w+", re.IGNORECASE)
# Said in parting, or of what nobody can promise.
_UNLIKELY = re.compile(
    r"\b(?:see|talk to|catch|keep|let|miss|never|always|be (?:here|there|back|right|fine|okay|happy|glad)|think|try|hope|"
    r"definitely|probably|cherish|remember|support|cheer)\b",
    re.IGNORECASE,
)
