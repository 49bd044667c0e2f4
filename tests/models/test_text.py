"""Prompts, books, and tokenizers from local folders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from medground.errors import ConfigError, ModelError
from medground.models.common import book as entity_book
from medground.models.common.text import Prompts, Tokenizer, plain, read_book


def test_user_prompts_go_before_names_and_names_before_the_finding() -> None:
    prompts = Prompts("a {label}", {"Mass": "my mass", "edema": ["one", "two"]}, {"Nodule": "lung nodule"})
    assert prompts.of("mass") == ("my mass",)
    assert prompts.of("Edema") == ("one", "two")
    assert prompts.of("Nodule") == ("a lung nodule",)
    assert prompts.of("Pleural_Thickening") == ("a pleural thickening",)
    assert prompts.given("Nodule") == ()


@pytest.mark.parametrize(
    ("finding", "words"),
    [("Lung Opacity", "lung opacity"), ("ILD", "ILD"), ("COVID-19", "COVID-19"), ("Enlarged PA", "enlarged PA")],
)
def test_acronyms_keep_their_letters(finding: str, words: str) -> None:
    assert plain(finding) == words


def test_empty_prompts_and_templates_without_a_place_are_errors() -> None:
    with pytest.raises(ConfigError, match="empty"):
        Prompts("{label}", {"Mass": ""})
    with pytest.raises(ConfigError, match="no place"):
        Prompts("a photo")


def test_tokenizer_pads_to_the_longest_or_to_its_length(bert_folder: Path) -> None:
    texts = ["effusion", "pleural effusion in the left lung"]
    ids, mask = Tokenizer(bert_folder, 12)(texts)
    assert ids.shape == mask.shape == (2, 8)
    assert mask.sum(1).tolist() == [3, 8]
    assert Tokenizer(bert_folder, 12, pad_to_length=True)(texts)[0].shape == (2, 12)
    assert Tokenizer(bert_folder, 5)(texts)[0].shape == (2, 5)
    assert Tokenizer(bert_folder, 5).describe() != Tokenizer(bert_folder, 6).describe()
    assert ids[1].tolist() == AutoTokenizer.from_pretrained(bert_folder)(texts[1])["input_ids"]


def test_folder_without_a_vocabulary_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(ModelError, match="no tokenizer"):
        Tokenizer(tmp_path, 12)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError, match="no tokenizer"):
        Tokenizer(tmp_path, 12)


def test_books_are_json_objects(write_book: Callable[..., Path], tmp_path: Path) -> None:
    assert read_book(write_book("a", {"x": "y"})) == {"x": "y"}
    with pytest.raises(ModelError, match="cannot be read"):
        read_book(tmp_path / "missing.json")
    with pytest.raises(ModelError, match="JSON object"):
        read_book(write_book("b", {}))


def full_book() -> dict[str, str]:
    names = {position: name for name, position in entity_book.POSITIONS.items()}
    return {names.get(i, f"observation {i}"): f"text {i}" for i in range(75)}


def test_findings_are_looked_up_by_position_and_unknown_ones_need_words() -> None:
    book, prompts = full_book() | {"covid19": "text 75"}, Prompts("{label}", {"Cyst": "a ring"})
    found = entity_book.queries(["Effusion", "Pleural effusion", "Fibrosis", "COVID-19", "Cyst"], book, prompts)
    assert [q.position for q in found] == [8, 8, 73, 75, None]
    assert found[-1].text == "a ring"
    with pytest.raises(ModelError, match="no observation for 'Lung cavity'") as caught:
        entity_book.queries(["Lung cavity"], book, prompts)
    assert "prompts: {Lung cavity: DESCRIPTION}" in str(caught.value)
    worded = Prompts("{label}", {"Effusion": "water"})
    assert entity_book.queries(["Effusion"], book, worded)[0] == entity_book.Query(None, "water")


def test_a_misspelt_key_is_no_matter_but_another_order_is() -> None:
    book = full_book()
    misspelt = {("eumonia" if key == "pneumonia" else key): text for key, text in book.items()}
    entity_book.check_book(misspelt, "book")
    assert entity_book.queries(["Pneumonia"], misspelt, Prompts("{label}"))[0].position == 20
    with pytest.raises(ModelError, match="published order"):
        entity_book.check_book(dict(sorted(book.items())), "book")
    with pytest.raises(ModelError, match="too short"):
        entity_book.check_book({"effusion": "x"}, "book")


@pytest.mark.parametrize("present", [(), ("sentencepiece",), ("google.protobuf",)])
def test_a_published_folder_with_a_sentencepiece_file_alone_names_what_to_install(
    present: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from medground.models.common import text

    (tmp_path / "tokenizer.model").write_bytes(b"\n\x0e\n\x05<unk>")
    (tmp_path / "config.json").write_text('{"model_type": "llava_mistral"}')
    monkeypatch.setattr(text, "find_spec", lambda name: object() if name in present else None)
    with pytest.raises(ModelError, match="SentencePiece") as caught:
        Tokenizer(tmp_path, 77)
    assert "pip install 'medground[sentencepiece]'" in str(caught.value)
