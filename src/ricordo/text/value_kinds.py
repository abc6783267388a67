"""Values that look like names and are of another kind: dates, and countries, in which the towns lie.

"was born in March" is no other birthplace, and "lives in Italy" no other place than "lives in Rome".
"""

from __future__ import annotations

from collections.abc import Sequence

_DATE_WORDS = """january february march april may june july august september october november december
monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays
sundays spring summer autumn winter easter christmas today tomorrow"""
_RUSSIAN_DATES = """январ феврал март апрел мая май мае июн июл август сентябр октябр ноябр декабр понедельник вторник
сред четверг пятниц суббот воскресень весн лето лета летом осен зим завтра"""
_COUNTRY_WORDS = """argentina armenia australia austria belarus belgium brazil britain bulgaria canada chile china
colombia croatia cuba cyprus czechia denmark egypt england estonia ethiopia finland france georgia germany ghana
greece hungary iceland india indonesia iran iraq ireland israel italy jamaica japan kazakhstan kenya korea
latvia lebanon lithuania luxembourg malaysia malta mexico moldova mongolia morocco nepal netherlands nigeria norway
pakistan peru philippines poland portugal romania russia scotland serbia siberia singapore slovakia slovenia spain
sweden switzerland syria taiwan tanzania thailand tunisia turkey uganda uk ukraine united uruguay us usa uzbekistan
venezuela vietnam wales africa america asia europe"""
_RUSSIAN_COUNTRIES = """австри австрали аргентин армени афган белорусси беларус бельги болгари бразили британи венгри
вьетнам германи греци грузи дания дании данию египет египт израил индия индии индию ирак иран ирланди исланди испани
итали казахстан канад китае китай китая корее кореи корея корею куба кубе латви литва литве литву мексик молдав монголи
нидерланд норвеги пакистан польш португали росси румыни серби сибир словаки словени сша таиланд турци узбекистан украин
финлянди франци хорвати чехи чили швейцари швеци эстони япони европ азии азия африк америк"""

_DATES, _DATE_STEMS = frozenset(_DATE_WORDS.split()), tuple(_RUSSIAN_DATES.split())
_COUNTRIES, _COUNTRY_STEMS = frozenset(_COUNTRY_WORDS.split()), tuple(_RUSSIAN_COUNTRIES.split())


def is_date(words: Sequence[str]) -> bool:
    """Whether folded words are a day, a month or a season, with or without numbers."""
    is_named = any(word in _DATES or word.startswith(_DATE_STEMS) for word in words)
    return is_named and (len(words) == 1 or any(char.isdigit() for word in words for char in word))


def is_country(words: Sequence[str]) -> bool:
    """Whether folded words name a country, or a part of the world."""
    return any(word in _COUNTRIES or word.startswith(_COUNTRY_STEMS) for word in words)
