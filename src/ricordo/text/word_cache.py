"""What a function says of a word, kept: a conversation uses few different words."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_MOST = 65_536


class ByWord(dict[str, T]):
    """Answers by word; what is not there yet is asked for. `map(kept.__getitem__, words)` stays in C for all that is,
    which takes two thirds of the time of `lru_cache`: an import looks up each word of each message several times.

    Where too many are kept all of them go, and the common words are back at once.
    """

    __slots__ = ("_ask", "_longest")

    def __init__(self, ask: Callable[[str], T], *, longest: int = 64) -> None:
        """Args:
        ask: says the same of a word each time, in any thread.
        longest: words of more characters are not kept.
        """
        super().__init__()
        self._ask = ask
        self._longest = longest

    def __missing__(self, word: str) -> T:
        answer = self._ask(word)
        if len(word) <= self._longest:
            if len(self) >= _MOST:
                self.clear()
            self[word] = answer
        return answer
