"""Any chat model of transformers from a local folder: with sight (image-text-to-text) or without (causal language)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from medground.errors import ModelError
from medground.models.base import GenerationOptions, Message, ModelInfo, Reply, require
from medground.models.chat import structured
from medground.models.chat.local import looking, prompts
from medground.models.chat.local.hub import PREFIX, HubName, fetched
from medground.models.chat.local.loading import Quantization, load, stop_ids
from medground.models.chat.local.sampling import GumbelDraw, StopTexts, generators
from medground.models.chat.looks import How, Look
from medground.models.common.runtime import Precision, Runtime


class HfChat:
    """A chat model of transformers, run in this process.

    Args:
        checkpoint: folder with ``config.json``, safetensors, processor or tokenizer; a ``.gguf`` file; or
            ``hub:ORG/NAME@COMMIT``, where there is a network.
        max_new_tokens: most tokens of a reply where a benchmark states none.
        temperature: where a benchmark states none; 0: always the likeliest token.
        system: what the model is told before a conversation that brings no system turn of its own.
        images: what a model without sight does with pictures: ``refused``, or ``ignored``.
        chat_template: Jinja file, where the folder brings none.
        device: ``auto``, ``cpu``, ``cuda`` or as torch names it.
        dtype: precision of the weights.
        deterministic: only deterministic kernels.
        attention: ``sdpa``, or ``eager``, which is slower and lets its attention be looked at.
        device_map: ``auto`` spreads a large model over several GPUs, by transformers' own means (needs accelerate).
        quantization: ``8bit`` or ``4bit`` loading (needs bitsandbytes).
        trust_remote_code: runs Python that the folder brings; read it first.
        unsafe_weights: also takes pickled weights; only for files that you trust.
    """

    name: ClassVar[str] = "hf_chat"
    info: ClassVar[ModelInfo] = ModelInfo(
        title="chat model of transformers",
        licence="the model's own",
        obtain="a local folder of any image-text-to-text or causal language model: hf download ORG/NAME",
    )

    def __init__(
        self,
        *,
        checkpoint: HubName | Path,
        max_new_tokens: int = 256,
        temperature: float = 0.0,
        system: str | None = None,
        images: Literal["refused", "ignored"] = "refused",
        chat_template: Path | None = None,
        device: str = "auto",
        dtype: Precision = "float32",
        deterministic: bool = False,
        attention: Literal["sdpa", "eager"] = "sdpa",
        device_map: str | None = None,
        quantization: Quantization | None = None,
        trust_remote_code: bool = False,
        unsafe_weights: bool = False,
    ) -> None:
        if isinstance(checkpoint, str) and checkpoint.startswith(PREFIX):
            checkpoint = fetched(checkpoint, code=trust_remote_code, pickles=unsafe_weights)
        self.runtime = Runtime(device, dtype, deterministic=deterministic)
        self.defaults = GenerationOptions(max_new_tokens=max_new_tokens, temperature=temperature)
        self.images = images
        self.system = system
        self._loaded = load(
            Path(checkpoint),
            dtype=dtype,
            device=self.runtime.device,
            chat_template=chat_template,
            trust_remote_code=trust_remote_code,
            unsafe_weights=unsafe_weights,
            attention=attention,
            device_map=device_map,
            quantization=quantization,
        )
        self._stops = stop_ids(self._loaded)
        self._options: dict[str, Any] = {"attention": attention, "quantization": quantization, "images": images}
        if system is not None:
            self._options["system"] = system
        sight = {"pictures", "several_pictures"} if self._loaded.sees else set()
        calls = {"tools"} if "tools" in str(self._loaded.processor.chat_template) else set()
        looks = {"look"} if self._loaded.sees and attention == "eager" else set()
        self.capabilities = frozenset({"reply", "choose"} | sight | calls | looks)

    def fingerprint(self) -> str:
        """A hash over weights, configuration, tokenizer, template, precision and defaults."""
        told = [self.name, self._loaded.sha256, self._options, self.runtime.describe(), self.defaults.record()]
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]

    def reply(
        self, conversations: Sequence[Sequence[Message]], options: GenerationOptions | None = None
    ) -> list[Reply]:
        """Return one reply a conversation, made in one batch padded on the left.

        Raises:
            ModelError: a picture is shown to a model without sight, or tools are asked of one without them.
        """
        wanted = options or self.defaults
        if wanted.tools and "tools" not in self.capabilities:
            raise ModelError("the chat template of this model knows no tools", where="tools")
        if wanted.schema is None:
            return self._replies(conversations, wanted)
        schema = wanted.schema
        asked = [structured.with_instruction(conversation, schema) for conversation in conversations]
        first = [structured.settled(reply, schema) for reply in self._replies(asked, wanted)]
        unmet = [index for index, reply in enumerate(first) if reply.outcome == "unreadable"]
        again = [structured.asked_again(asked[i], first[i].text, first[i].reason) for i in unmet]
        for index, second in zip(unmet, self._replies(again, wanted) if again else [], strict=True):
            first[index] = structured.together(first[index], structured.settled(second, schema))
        return first

    def _replies(self, conversations: Sequence[Sequence[Message]], options: GenerationOptions) -> list[Reply]:
        from transformers import GenerationConfig, LogitsProcessorList, StoppingCriteriaList

        inputs = self._inputs(conversations, options)
        processors = LogitsProcessorList()
        if options.temperature > 0:
            processors.append(GumbelDraw(options, generators(conversations, options)))
        width = inputs["input_ids"].shape[1]
        stopping = StoppingCriteriaList()
        if options.stop:
            stopping.append(StopTexts(options.stop, self._loaded.tokenizer.decode, width))
        settings = GenerationConfig(
            max_new_tokens=options.max_new_tokens,
            do_sample=False,
            eos_token_id=self._stops or None,
            pad_token_id=self._loaded.tokenizer.pad_token_id,
            return_dict_in_generate=True,
            output_logits=options.log_probabilities,
        )
        with self.runtime.inference():
            generated = self._loaded.network.generate(
                **inputs, generation_config=settings, logits_processor=processors, stopping_criteria=stopping
            )
        prompt = inputs["attention_mask"].sum(-1).tolist()
        logits = torch.stack(generated.logits, 1).float().log_softmax(-1) if options.log_probabilities else None
        return [
            self._read(ids, prompt[row], None if logits is None else logits[row], options)
            for row, ids in enumerate(generated.sequences[:, width:].tolist())
        ]

    def _read(self, ids: list[int], prompt: int, logits: Tensor | None, options: GenerationOptions) -> Reply:
        end = next((place for place, token in enumerate(ids) if token in self._stops), len(ids))
        text = self._loaded.tokenizer.decode(ids[:end], skip_special_tokens=True)
        stopped = end < len(ids)
        for stop in options.stop:
            if stop in text:
                text, stopped = text[: text.index(stop)], True
        told = None if logits is None else tuple(logits[torch.arange(end), torch.tensor(ids[:end]).long()].tolist())
        calls = prompts.tool_calls(text) if options.tools else ()
        finish = "tool_calls" if calls else "stop" if stopped else "length"
        usage = {"prompt_tokens": prompt, "completion_tokens": min(end + stopped, len(ids))}
        return Reply(text.strip(), finish=finish, usage=usage, log_probabilities=told, tool_calls=calls)

    def choose(
        self, conversations: Sequence[Sequence[Message]], choices: Sequence[Sequence[str]]
    ) -> list[NDArray[np.floating[Any]]]:
        """Return the log-probability of every choice as the next words: one array ``(K,)`` a conversation.

        A prompt is encoded once, whatever the number of its choices.

        Raises:
            ModelError: a choice has no tokens.
        """
        rows = []
        for conversation, own in zip(conversations, choices, strict=True):
            ids = [self._loaded.tokenizer(choice, add_special_tokens=False)["input_ids"] for choice in own]
            if not all(ids):
                raise ModelError("a choice has no tokens", got=repr(own[[bool(i) for i in ids].index(False)]))
            with self.runtime.inference():
                rows.append(self._scored(conversation, ids))
        return rows

    def _scored(self, conversation: Sequence[Message], choices: list[list[int]]) -> NDArray[np.floating[Any]]:
        inputs = self._inputs([conversation], self.defaults)
        network = self._loaded.network
        prompt = network(**inputs, use_cache=True, logits_to_keep=1)
        first = prompt.logits[0, -1].float().log_softmax(-1)
        longest = max(map(len, choices))
        device = first.device
        ids = torch.zeros(len(choices), longest, dtype=torch.long, device=device)
        real = torch.zeros(len(choices), longest, dtype=torch.bool, device=device)
        for row, choice in enumerate(choices):
            ids[row, : len(choice)] = torch.tensor(choice, device=device)
            real[row, : len(choice)] = True
        total = first[ids[:, 0]].double()
        if longest > 1:
            cache = prompt.past_key_values if "past_key_values" in prompt else prompt.cache
            cache.batch_repeat_interleave(len(choices))
            seen = inputs["attention_mask"].expand(len(choices), -1)
            mask = torch.cat([seen, real[:, :-1].to(seen.dtype)], 1)
            # Steps are taken one token after the other of a choice at once: all of them are known.
            more = network(input_ids=ids[:, :-1], attention_mask=mask, cache=cache, use_cache=True)
            told = more.logits.float().log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0].double()
            total += (told * real[:, 1:]).sum(-1)
        return np.asarray(total.cpu().numpy(), dtype=np.float64)

    def look(
        self, conversations: Sequence[Sequence[Message]], choices: Sequence[tuple[str, str]], how: How
    ) -> list[Look]:
        """Return where the model looks as its answer begins; see :class:`medground.models.chat.looks.Looking`.

        Raises:
            ModelError: its attention cannot be reached, or its picture is not one square of tokens.
        """
        require(self, ["look"], by=f"place: {how}")
        return [self._look(*asked, how) for asked in zip(conversations, choices, strict=True)]

    def _look(self, conversation: Sequence[Message], choices: tuple[str, str], how: How) -> Look:
        images = [image for turn in conversation for image in turn.images]
        inputs = self._inputs([conversation], self.defaults)
        place, side = looking.grid_of(self._loaded, inputs)
        geometry = looking.geometry_of(self._loaded, images[0].size)
        if how == "attention":
            relevance = looking.attention_map(self._loaded.network, inputs, place)
        else:
            ids = looking.next_tokens(self._loaded.tokenizer, choices)
            relevance = looking.gradient_map(self._loaded.network, inputs, place, *ids)
        return Look(relevance.view(side, side).cpu().numpy().astype(np.float32), geometry)

    def _told(self, conversation: Sequence[Message]) -> Sequence[Message]:
        """Return a conversation with the system turn before it, where it brings none."""
        if self.system is None or any(turn.role == "system" for turn in conversation):
            return conversation
        return [Message("system", self.system), *conversation]

    def _inputs(self, conversations: Sequence[Sequence[Message]], options: GenerationOptions) -> dict[str, Any]:
        sees = self._loaded.sees
        if self.images == "ignored" and not sees:
            conversations = [[replace(turn, images=()) for turn in one] for one in conversations]
        turns = [prompts.turns(self._told(conversation), sees=sees) for conversation in conversations]
        given = {"tools": prompts.tools(options.tools)} if options.tools else {}
        padding = {"padding": True, "return_tensors": "pt"}
        more = {"processor_kwargs": padding} if sees else padding
        inputs = self._loaded.processor.apply_chat_template(
            turns, add_generation_prompt=True, tokenize=True, return_dict=True, **more, **given
        )
        network = self._loaded.network
        ready = {}
        for name, value in inputs.items():
            if isinstance(value, Tensor):
                ready[name] = value.to(network.device, network.dtype if value.is_floating_point() else None)
        return ready
