"""The line format and its fast parser."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.storage.jsonl.lines import LineError, decoded, encode, line_mark, parsed, quick_reader

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), _VALUES, max_size=5))
def test_the_fast_parser_equals_the_plain_one(line):
    raw = json.dumps(line).encode()  # with escapes, including lone surrogates
    assert decoded(raw, quick_reader()) == decoded(raw) == line
    assert line_mark(decoded(raw, quick_reader())) == line_mark(line)
    assert [type(each) for each in decoded(raw, quick_reader()).values()] == [type(each) for each in line.values()]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_read_to_the_last_digit(number):
    assert parsed(encode({"n": number}).encode(), quick_reader())["n"].hex() == number.hex()


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"[]", b"7", b"{} {}", b'{"a": \xff}', b"[" * 100_000, b'{"a": "\xed\xa0\x80"}', b'{"a": "\\ud800"}'],
)
def test_invalid_lines_are_invalid_for_both_parsers(raw):
    for read in (json.loads, quick_reader()):
        with pytest.raises(LineError):
            parsed(raw, read)
