"""Personal data that a person chooses to leave out: what is found, what is not, and that nothing else changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo import InvalidError, Settings
from ricordo.text.secrets import redact, redact_personal
from ricordo.text.secrets.personal import PERSONAL

FOUND = [
    ("email", "write to anna.schmidt+x@mail.example.co.uk please"),
    ("email", "ben (at) example (dot) com"),
    ("email", "почта: иван@пример.рф"),
    ("phone", "call +49 170 1234567 tomorrow"),
    ("phone", "my number is (555) 867-5309."),
    ("phone", "ring 089/12345678"),
    ("phone", "06 12 34 56 78 est mon numéro"),
    ("phone", "8 (916) 123-45-67, звони"),
    ("phone", "我的电话是13812345678"),
    ("phone", "phone: 555123"),
    ("phone", "mein Handy hat die Nummer 4711 0815"),
    ("card", "card 4111 1111 1111 1111 expires soon"),
    ("iban", "IBAN DE89 3704 0044 0532 0130 00 and more"),
    ("iban", "pay to gb82west12345698765432"),
    ("id_number", "ssn 123-45-6789"),
    ("id_number", "cpf 529.982.247-25"),
    ("id_number", "112-233-445 95"),
    ("id_number", "12345678Z"),
    ("id_number", "RSSMRA85T10A562S"),
    ("id_number", "11010519491231002X"),
    ("id_number", "44051401359"),
    ("id_number", "AB 12 34 56 C"),
    ("id_number", "756.9217.0769.85"),
    ("id_number", "2 55 08 14 168 025 38"),
    ("id_number", "my passport number is X1234567"),
    ("id_number", "паспорт 4509 123456"),
    ("id_number", "mein Reisepass: C01X00T47"),
]
NOT_FOUND = [
    "It was on 2023-05-12 at 10:30 and 12.05.2023.",
    "We have 10 000 000 users and 1,234,567 rows",
    "The years 1995-1999 and 2019/2020",
    "version 1.22.333.4444 at 192.168.100.200 port 8080",
    "order 123456789 was shipped",
    "ISBN 978-3-16-148410-0",
    "It costs 1.200,50 EUR",
    "card 4111 1111 1111 1112 has a wrong digit",
    "DE89 3704 0044 0532 0130 01 has a wrong digit",
    "529.982.247-26 and 12345678A have a wrong digit",
    "tel aviv in 2023, me@home",
    "phone 12 Pro Max costs 1,299.00",
    "my passport expires 12.05.2030",
    "use `@app.errorhandler` and 0.0067108864",
    "score 21-17 21-19 15-21",
]


@pytest.mark.parametrize(("kind", "text"), FOUND)
def test_what_is_chosen_is_replaced(kind, text):
    done = redact_personal(text, frozenset((kind,)))
    assert f"[redacted: {kind.replace('_', ' ')}]" in done.text
    assert len(done.findings) == 1
    assert sum(char.isdigit() for char in done.text) <= 2
    assert redact_personal(text, PERSONAL).findings, "all kinds together find it, too"
    assert redact_personal(text, frozenset(())).text == text


@pytest.mark.parametrize("text", NOT_FOUND)
def test_ordinary_numbers_stay(text):
    assert redact_personal(text, PERSONAL).text == text


@given(st.lists(st.sampled_from([text for _, text in FOUND] + NOT_FOUND) | st.text(max_size=20), max_size=4))
def test_redacting_again_finds_nothing_more(parts):
    once = redact_personal(" ".join(parts), PERSONAL).text
    assert redact_personal(once, PERSONAL).text == once
    assert redact(once).text == once or redact(" ".join(parts)).findings


def test_the_setting_names_the_kinds():
    assert Settings(redact="email, Phone").redacted_kinds() == {"email", "phone"}
    assert Settings().redacted_kinds() == frozenset()
    with pytest.raises(InvalidError, match="'names' unknown") as error:
        Settings(redact="names")
    assert "id_number" in error.value.hint
