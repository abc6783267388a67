"""The words by which `plain` knows what is worth keeping, in English and Russian. Case counts only in names."""

from __future__ import annotations

import re
from typing import Literal

Kind = Literal["fact", "preference", "opinion", "decision", "commitment"]


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


DOUBTFUL = _any(
    r"\b(?:if|unless|maybe|perhaps|might|wish|imagine|suppose|pretend|would(?!\s+rather)|could|should|not sure)\b",
    r"\b(?:если|бы|может быть|наверное|возможно|кажется|вроде|допустим|представь\w*)\b",
)
"""A guess, a wish or a condition."""

_SPANS = r"(?:week|month|year|summer|spring|fall|autumn|winter|weekend)"
VAGUE = _any(
    rf"\b(?:it(?!['’]s\s+\w+\s+(?:to|that)\b)|them|this(?!\s+{_SPANS})|these|those)\b|\bto$",
    r"\b(?:это(?!й|го|му)|эт[иу]|этих|этот|их)\b",
)
"""What speaks of something that only the messages around it name."""

LEAD = re.compile(
    r"^(?:(?:and|so|but|well|oh|ok(?:ay)?|yes|yeah|yep|no|hi|hey|hello|wow|haha|lol|thanks|by the way|btw|also|actually"
    r"|honestly|frankly|personally|basically|anyway|you know|to be honest"
    r"|а|и|но|ну|да|нет|ой|привет|кстати|вообще"
    r"|честно говоря|если честно|(?:ты |вы )?знае(?:шь|те)(?: ли)?|в общем)[,:!—–-]*\s+)+",
    re.IGNORECASE,
)
"""What opens a sentence and says nothing."""

TOLD = re.compile(
    r"^(?:(?:please|пожалуйста),?\s+)?(?:"
    r"(?:remember|note|keep in mind|don['’]t forget|make a note|for the record)(?::|\s+that)\s+"
    r"|(?:(?:quick|one|two|just|important)\s+)?(?:facts?|fyi|confirmed|reminder)\b[^:.]{0,40}:\s*"
    r"|(?:запомни(?:те)?|запиши(?:те)?|имей(?:те)? в виду|не забудь(?:те)?|учти(?:те)?)(?:,?\s+что|:|,)\s+"
    r"|(?:(?:два|краткая|важный)\s+)?(?:факты?|факта|справка|для справки|подтверждено|напоминание)\b[^:.]{0,40}:\s*)",
    re.IGNORECASE,
)
"""Told to be kept: what follows is the fact."""

# Somebody as the subject, a pronoun or a name, and what may stand between them and the verb.
_NAME = r"(?-i:\b[A-Z][\w-]+(?:\s+[A-Z][\w-]+)?)"
_NAME_RU = r"(?-i:\b[A-ZА-ЯЁ][\w-]+(?:\s+[A-ZА-ЯЁ][\w-]+)?)"
_WHO = rf"(?:\b(?:i|we|he|she|they|the user|user)|{_NAME})"
_WHO_RU = rf"(?:\b(?:я|мы|он|она|они|user|пользователь)|{_NAME_RU})"
_ADVERBS = "really|strongly|absolutely|much|always|usually|generally|still|also|just|truly|totally|do|simply|only"
_ADVERBS_RU = "очень|всегда|обычно|больше всего|настоятельно|просто|тоже|решительно|категорически|по-прежнему"
_HOW = rf"(?:\s+(?:{_ADVERBS}))*"
_HOW_RU = rf"(?:\s+(?:{_ADVERBS_RU}))*"

# "I love it", "I like the colours": of nothing that the sentence names.
_NAMED = (
    r"(?!\s+(?:it|this|that|you|your|how|the way|them|these|those|when|so|him|her|his|their|its)\b)"
    r"(?!\s+(?:the|all the)\s+(?-i:[a-z]))"
)
_NAMED_RU = r"(?!\s+(?:это|эта|этот|эту|эти|такое|тебя|вас|его|её|их|как|что|когда|твой|твоя|твою|твоё|твои)\b)"

_MANY = r"(?:prefer|love|like|enjoy|hate|dislike|adore|don['’]t (?:like|eat|drink)|never (?:eat|drink))"
_ONE = r"(?:prefers|loves|likes|enjoys|hates|dislikes|adores|doesn['’]t (?:like|eat|drink)|never (?:eats|drinks))"
_FOND = r"(?:am|['’]m|is|are|['’]re)\s+(?:(?:really|very)\s+)?(?:fond of|an? (?:big |huge )?fan of|crazy about)"
_ANYBODY = rf"(?:can['’]?t stand|cannot stand|would rather|['’]d rather|{_FOND})"
_LIKES = rf"(?:(?:i|we|they){_HOW}\s+{_MANY}|(?:he|she|(?:the )?user|{_NAME}){_HOW}\s+{_ONE}|{_WHO}{_HOW}\s*{_ANYBODY})"
_LIKES_RU = (
    r"(?:не\s+)?(?:предпочита(?:ю|ет|ем|ют)|люблю|любит|любим|любят|обожа(?:ю|ет|ем|ют)|ненави(?:жу|дит|дим|дят)"
    r"|терпеть не мо(?:гу|жет|гут)|не (?:ем|ест|пью|пь[её]т))"
)

# An opinion of something the sentence names, or of what is right in general.
_SOMETHING = (
    r"(?!\s+(?:so|not|about|of|in|i|we|you|your|he|she|they|that|this|these|those|myself)\b)"
    r"(?!\s+it\b(?!['’]s\s+(?:important|better|best|wrong|right|good|bad|essential|crucial)\s+(?:to|that)\b))"
    r"(?=(?:\W+\w+){4})"
)
_SOMETHING_RU = r"(?!\s+(?:так|об?|над|в|я|мы|ты|вы|он|она|они|это|себя)\b)(?=(?:\W+\w+){4})"

_FAMILY = "wife|husband|partner|girlfriend|boyfriend|son|daughter|sister|brother|mother|father|mom|mum|dad|dog|cat|boss"
_FAMILY_RU = "сын|дочь|дочка|сестра|брат|жена|муж|собака|кошка|кот|дети|ребёнок|двое детей|трое детей"
_DATED = "birthday|anniversary|deadline|appointment|wedding|exam|flight|interview|surgery|due date|defen[cs]e"
_DATED_RU = "день рождения|годовщина|дедлайн|срок|при[её]м|свадьба|экзамен|рейс|собеседование|операция|защита"
_MONTH = "january|february|march|april|may|june|july|august|september|october|november|december"
_DAY = rf"[^.]{{0,40}}\b(?:\d|{_MONTH}|(?:mon|tues|wednes|thurs|fri|satur|sun)day)"
_DAY_RU = r"[^.]{0,40}(?:\d|понедельник|вторник|сред[уы]|четверг|пятниц|суббот|воскресень)"

CUES: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    (
        "commitment",
        _any(
            rf"^(?:{_WHO}{_HOW}(?:\s+(?:have|has|am|is)|['’]ve|['’]m)?\s+)?"
            r"(?:promise|promised|committed to|committing to|commit to)\b(?!\s+(?:me|myself)\b)",
            rf"^(?:{_WHO_RU}{_HOW_RU}\s+)?(?:обеща(?:ю|ем|л|ла|ли)|пообещал[аи]?|обязу(?:юсь|емся)|обязал(?:ся|ась|ись)"
            r"|беру на себя|берём на себя|взял[аи]? на себя)\b",
        ),
    ),
    (
        "decision",
        _any(
            rf"^(?:{_WHO}{_HOW}(?:\s+(?:have|has)|['’]ve|['’]s)?(?:\s+(?:finally|just|all|already))*\s+)?"
            r"(?:decided|chose|agreed (?:to|on)|agreed:|settled on|opted)\b",
            r"^(?:the )?decision(?: made)?\b[^.]{0,40}:",
            rf"^(?:{_WHO_RU}\s+)?(?:наконец |уже )?"
            r"(?:решил[аи]?|выбрал[аи]?|договорились|остановил(?:ся|ась|ись) на)\b",
            r"^(?:было )?принято решение\b|^решено\b",
        ),
    ),
    (
        "preference",
        _any(
            rf"^(?:[^,.]{{0,40}}\b(?:told|says|said)\b[^,.]{{0,20}}\s)?{_LIKES}\b{_NAMED}",
            rf"\b(?:my|his|her|our|(?:{_FAMILY})['’]s)\s+favou?rite\s+[\w\s]{{1,40}}\b(?:is|are)\b",
            rf"^(?:{_WHO_RU}(?:\s+сказал[аи]?,\s+что)?{_HOW_RU}\s+)?{_LIKES_RU}\b{_NAMED_RU}",
            rf"^(?:мне|нам|ему|ей|им)(?:\s+(?:очень|больше|совсем|не))*\s+нрав(?:ится|ятся)\b{_NAMED_RU}",
            r"^(?:мой|моя|моё|мое|мои|наш|наша)\s+любим\w+\s+\w+",
        ),
    ),
    (
        "opinion",
        _any(
            rf"^i{_HOW}\s+(?:think|believe|feel that|find|doubt|consider)(?:\s+that)?\b{_SOMETHING}",
            r"^(?:in my (?:opinion|view)|my (?:take|view|opinion)(?: (?:on|is)\b|:)|if you ask me)",
            r"^i(?:['’]m|\s+am)\s+(?:(?:very|deeply|rather)\s+)?(?:skeptical|sceptical|convinced|of the opinion)\b",
            rf"^(?:я\s+)?(?:думаю|считаю|полагаю|нахожу|убежд[её]н[аы]?)\b,?(?:\s+что)?{_SOMETHING_RU}",
            r"^(?:по-моему|на мой взгляд|мой взгляд на)\b|^я\s+скептически\b",
        ),
    ),
    (
        "fact",
        _any(
            r"^my name is\s+\w|^call me\s+(?-i:[A-Z])",
            r"^(?:i|we)\s+(?:live|lived|work|grew up)\s+(?:in|at|as|for|near|with)\b|^i\s+was\s+born\b",
            r"^i(?:['’]m|\s+am)\s+(?:from|allergic to)\b",
            r"^i(?:['’]m|\s+am)\s+an?\s+(?!bit|little|lot|huge|big|mess|fan|fool|few)[\w-]+(?:\s+[\w-]+){0,3}$",
            r"^(?:i|we)(?:\s+have|['’]ve\s+got)\s+(?:an?|two|three|four|five|no)\s+(?:[\w-]+\s+){0,2}"
            r"(?:sons?|daughters?|kids?|children|brothers?|sisters?|dogs?|cats?|siblings?|allerg\w+)\b",
            rf"^my\s+(?:{_FAMILY})(?:['’]s name)?\s+is\s+(?:called\s+|named\s+)?"
            r"(?:(?-i:[A-Z])|an?\s|from\s|allergic|in\s)",
            rf"^(?:my|our|(?:the\s+)?(?-i:[A-Z])[\w\s'’-]{{1,60}})\s*(?:{_DATED})\s+(?:is|starts|begins)\s+{_DAY}",
            r"^меня зовут\s+\w|^я\s+(?:живу|работаю|родил(?:ся|ась)|вырос(?:ла)?)\b"
            r"|^я\s+(?:родом\s+)?из\s+(?-i:[А-ЯЁ])",
            rf"^у (?:меня|нас)\s+(?:аллергия на\s|(?:есть\s+)?(?:\w+\s+){{0,2}}(?:{_FAMILY_RU})\b)",
            rf"^(?:мой|моя|моё|мое|наш|наша|(?-i:[A-ZА-ЯЁ])[\w\s-]{{1,60}})\s*(?:{_DATED_RU})[\w\s]{{0,40}}\s+"
            rf"(?:—|–|-|состоится|начинается|в|назначен\w*)\s*{_DAY_RU}",
        ),
    ),
)
"""What a sentence says that begins so, the most telling first."""

WILL = re.compile(r"^(?:i['’]ll|i\s+will|we['’]ll|we\s+will|i['’]m\s+going\s+to)\s+\w+", re.IGNORECASE)
UNLIKELY = re.compile(
    r"\b(?:see|talk to|catch|keep|let|miss|never|always|be (?:here|there|back|right|fine|okay|happy|glad)|think|try"
    r"|hope|definitely|probably|cherish|remember|support|cheer)\b",
    re.IGNORECASE,
)
"""Said in parting, or of what nobody can promise."""
