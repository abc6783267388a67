"""Name the writer beside a member of a space in whose name somebody else wrote: "anya, as dima wrote". Pure.

The two names are one speaker, so what Dima wrote in Anya's name is nowhere taken for what she says of herself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ricordo.text.names import same_name_key

_REPORTED = re.compile(r"(?P<speaker>.+), as (?P<writer>.+) wrote", re.DOTALL)


def reported(speaker: str, *, writer: str, members: Iterable[str]) -> str:
    """Return the speaker of a message to store: with the writer, if the speaker is another member.

    >>> reported("Anya", writer="dima", members=("anya", "dima")), reported("Dima", writer="dima", members=("dima",))
    ('Anya, as dima wrote', 'Dima')
    """
    found = _REPORTED.fullmatch(speaker)
    name = found["speaker"] if found else speaker
    others = {same_name_key(each) for each in members} - {same_name_key(writer), ""}
    is_others = same_name_key(name) in others or name in set(members) - {writer}
    return f"{name}, as {writer} wrote" if is_others else speaker


def reporter(speaker: str | None) -> str:
    """Return who wrote in the name of a speaker; "" if that is the speaker, or not known."""
    found = _REPORTED.fullmatch(speaker or "")
    return found["writer"] if found else ""
