"""Any chat model behind an OpenAI-compatible server: vLLM, llama.cpp, Ollama, transformers serve, or a hosted one."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal
from urllib.parse import urlsplit

from medground.errors import ConfigError, ModelError
from medground.models.base import GenerationOptions, Message, ModelInfo, Reply, conversation_hash
from medground.models.chat import structured
from medground.models.chat.remote import wire
from medground.models.chat.remote.cache import ReplyCache, cache_file
from medground.models.chat.remote.client import Client, Patience
from medground.models.chat.remote.ledger import RequestLedger, read_prices
from medground.models.chat.remote.limits import Concurrency, Cost, RateLimit, Turns
from medground.models.chat.remote.upload import is_here
from medground.spending import Budget, StopRunError, budget_of_the_run

READY = 2  # requests that are made ready while all others are on their way
TOKENS_A_PICTURE = 2000  # set aside in budgets before the server has counted
_SCHEMA_WORDS = re.compile(r"response_format|json_schema|schema|structured|guided|grammar", re.IGNORECASE)


class ApiChat:
    """A chat model behind an OpenAI-compatible server.

    Replies that succeed are kept on disk under the hash of everything that was sent, so a run that is repeated asks
    only for what is missing. The key is read from the environment and stands nowhere else.

    Args:
        base_url: of the server, such as ``http://127.0.0.1:8000/v1``.
        model: as the server names it.
        key_env: *name* of the environment variable that holds the key.
        max_new_tokens: most tokens of a reply where a benchmark states none.
        temperature: where a benchmark states none.
        longest_side: of the pictures that are sent, in pixels.
        images: ``sent``; ``ignored`` for a model without sight, which is then asked without its pictures.
        tools: whether the model can call tools.
        served_as: the name that the server must give itself; by default the one in its first reply.
        structured: ``auto`` sends a JSON schema where the server takes one, found out once; ``text`` never does.
        limit_name: what the server calls the number of new tokens.
        leave_out: sampling parameters that the server refuses, such as ``temperature`` or ``seed``.
        extra: further fields of every request.
        concurrency: most requests at once; fewer while the server answers 429.
        requests_per_minute: limit.
        tokens_per_minute: limit.
        max_tries: of a request that fails in a way that may pass.
        timeout: seconds a try may take.
        max_wait: longest wait that a server may ask for, in seconds.
        base_wait: seconds before a second try, doubled each time.
        run_deadline: seconds from the first request, after which the run stops.
        budget_tokens: most tokens of this model in one session of a run; ``engine.budget_tokens`` bounds the whole run.
        budget_money: most money, alike; needs ``prices``.
        prices: dated price file.
        cache: file of kept replies, on a local disk; ``none`` keeps nothing.
        allow_upload: lets pictures of datasets that may not be passed on leave this machine.
    """

    name: ClassVar[str] = "api_chat"
    remote: ClassVar[bool] = True
    concurrent: ClassVar[bool] = True  # a round is asked at once; the model limits itself
    info: ClassVar[ModelInfo] = ModelInfo(
        title="chat model behind an API",
        licence="the provider's terms",
        obtain="base_url and model of any OpenAI-compatible server; the name of the variable that holds its key",
        unverified="what a hosted model is, and whether it stays the same, cannot be checked from outside",
    )

    def __init__(
        self,
        *,
        base_url: str,
        model: str,
        key_env: str | None = None,
        max_new_tokens: int = 256,
        temperature: float = 0.0,
        longest_side: int = 1024,
        images: Literal["sent", "ignored"] = "sent",
        tools: bool = True,
        served_as: str | None = None,
        structured: Literal["auto", "text"] = "auto",
        limit_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens",
        leave_out: list[str] | None = None,
        extra: dict[str, Any] | None = None,
        concurrency: int = 8,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        max_tries: int = 6,
        timeout: float = 120.0,
        max_wait: float = 120.0,
        base_wait: float = 0.5,
        run_deadline: float | None = None,
        budget_tokens: int | None = None,
        budget_money: float | None = None,
        prices: Path | None = None,
        cache: Path | Literal["none"] | None = None,
        allow_upload: bool = False,
    ) -> None:
        _checked(base_url, key_env, longest_side, concurrency)
        if budget_money is not None and prices is None:
            raise ConfigError("a budget of money needs prices", where="budget_money", fix="prices: FILE")
        self.base_url, self.model, self.allow_upload = base_url.rstrip("/"), model, allow_upload
        self.defaults = GenerationOptions(max_new_tokens=max_new_tokens, temperature=temperature)
        self.longest_side, self.images, self._served_as = longest_side, images, served_as
        self._limit_name, self._leave_out, self._extra = limit_name, sorted(leave_out or ()), dict(extra or {})
        self._schemas: bool | None = None if structured == "auto" else False
        self.capabilities = _capabilities(images, tools)
        self.ledger = RequestLedger(read_prices(prices, model) if prices else None)
        self._budgets = self._shared_budgets(Budget(budget_tokens, budget_money))
        self._tokens = RateLimit(tokens_per_minute)
        limit = Concurrency(concurrency, start=min(concurrency, 8))
        patience = Patience(max_tries, timeout, max_wait, base_wait)
        self._client = Client(self.base_url, key_env, patience, limit, requests_per_minute, self.ledger, run_deadline)
        self._cache = None if cache == "none" else ReplyCache(cache_file(Path(cache) if cache else None))
        self._probing = threading.Lock()
        self._turns = Turns()
        self._first_name: str | None = None
        self._closing = weakref.finalize(self, _close, self._client, self._cache, self.ledger, model)

    def _shared_budgets(self, own: Budget) -> tuple[Budget, ...]:
        """Return the model's own budget and that of the run; a server on this machine costs no money by itself."""
        run = budget_of_the_run()
        if run is None:
            return (own,)
        prices = self.ledger.prices
        if prices is not None or not self.local:
            run.in_currency(prices.currency if prices else None, self.model)
        return own, run

    @property
    def local(self) -> bool:
        """Whether the server runs on this machine, so that nothing leaves it."""
        return is_here(self.base_url)

    def fingerprint(self) -> str:
        """A hash over the server, the model's name and everything that is sent beside a conversation."""
        return hashlib.sha256(json.dumps(self._identity(), sort_keys=True).encode()).hexdigest()[:16]

    def _identity(self) -> dict[str, Any]:
        return {
            "base_url": self.base_url,
            "model": self.model,
            "served_as": self._served_as,
            "longest_side": self.longest_side,
            "images": self.images,
            "limit_name": self._limit_name,
            "leave_out": self._leave_out,
            "extra": self._extra,
            "defaults": self.defaults.record(),
        }

    def reply(
        self, conversations: Sequence[Sequence[Message]], options: GenerationOptions | None = None
    ) -> list[Reply]:
        """Return one reply a conversation, in the order asked, several on their way at once.

        Raises:
            StopRunError: no further request can succeed: key, model, budget, deadline, another model answers.
            ModelError: tools are asked of a model that has none.
        """
        wanted = options or self.defaults
        if wanted.tools and "tools" not in self.capabilities:
            raise ModelError("this model calls no tools", where="tools", fix="tools: true, if it does")
        if len(conversations) == 1:
            return [self._reply(conversations[0], wanted)]
        with ThreadPoolExecutor(self._client.concurrency.most + READY, thread_name_prefix="api_chat") as pool:
            try:
                return list(pool.map(lambda conversation: self._reply(conversation, wanted), conversations))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def _reply(self, conversation: Sequence[Message], options: GenerationOptions) -> Reply:
        if self.images == "ignored":
            conversation = [replace(message, images=()) for message in conversation]
        key = self._key(conversation, options)
        with self._turns.of(key):
            kept = self._cache.get(key) if self._cache is not None else None
            if kept is not None:
                self.ledger.count("cache_hits")
                return Reply.of(kept)
            return self._asked(conversation, options, key)

    def _keep(self, key: str, reply: Reply) -> None:
        if reply.outcome == "ok" and self._cache is not None:
            self._cache.put(key, reply.record())

    def _key(self, conversation: Sequence[Message], options: GenerationOptions) -> str:
        told = [self._identity(), conversation_hash(conversation), options.record()]
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()

    def _asked(self, conversation: Sequence[Message], options: GenerationOptions, key: str) -> Reply:
        """Ask, and keep what succeeds before it is handed on."""
        if options.schema is None:
            reply = self._sent(conversation, options, schema=False, keep=lambda reply: self._keep(key, reply))
            assert reply is not None
            return self._counted(reply)
        answer = structured.settled(self._with_schema(conversation, options), options.schema)
        if answer.outcome == "unreadable":
            self.ledger.count("re_asks")
            again = structured.asked_again(conversation, answer.text, answer.reason)
            second = structured.settled(self._with_schema(again, options), options.schema)
            answer = structured.together(answer, second)
        self._keep(key, answer)
        return self._counted(answer)

    def _with_schema(self, conversation: Sequence[Message], options: GenerationOptions) -> Reply:
        """Send a request for a structured answer; the first one finds out whether the server takes schemas."""
        assert options.schema is not None
        if self._schemas is None:
            with self._probing:
                if self._schemas is None:
                    reply = self._sent(conversation, options, schema=True, probe=True)
                    self._schemas = reply is not None
                    if reply is not None:
                        return reply
        if self._schemas:
            sent = self._sent(conversation, options, schema=True)
        else:
            sent = self._sent(structured.with_instruction(conversation, options.schema), options, schema=False)
        assert sent is not None
        return sent

    def _sent(
        self,
        conversation: Sequence[Message],
        options: GenerationOptions,
        *,
        schema: bool,
        probe: bool = False,
        keep: Callable[[Reply], None] = lambda _: None,
    ) -> Reply | None:
        body = self._body(conversation, options, schema=schema)
        most = self._reserved(conversation, options)
        self.ledger.wait(self._tokens.take(most[0]))
        cost = Cost(self._budgets, most)

        def begin() -> None:
            try:
                cost.reserve()
            except StopRunError as error:
                raise self._client.stop(error) from None

        def take(reply: Reply) -> None:
            money = self.ledger.use(reply.usage)
            cost.settle((float(sum(reply.usage.values())), money) if reply.usage else None)
            self._verify(reply.model)
            keep(reply)

        try:
            return self._client.send(body, begin=begin, take=take, accept_400=_about_schemas if probe else None)
        finally:
            cost.release()

    def _body(self, conversation: Sequence[Message], options: GenerationOptions, *, schema: bool) -> dict[str, Any]:
        body = {
            "model": self.model,
            "messages": wire.messages(conversation, self.longest_side),
            **wire.sampling(options, self._limit_name),
            **self._extra,
        }
        if schema:
            form = {"name": "answer", "schema": options.schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        return {name: value for name, value in body.items() if name not in self._leave_out}

    def _reserved(self, conversation: Sequence[Message], options: GenerationOptions) -> tuple[float, float]:
        """Return the tokens and the money that a request may cost at most, before the server has counted."""
        prompt = sum(len(m.text.encode()) + 16 + TOKENS_A_PICTURE * len(m.images) for m in conversation)
        prompt += len(json.dumps(options.record()["schema"])) + len(json.dumps(options.record()["tools"]))
        money = self.ledger.prices.cost(prompt, options.max_new_tokens) if self.ledger.prices else 0.0
        return float(prompt + options.max_new_tokens), money

    def _counted(self, reply: Reply) -> Reply:
        if reply.outcome == "refusal":
            self.ledger.count("refusals")
        if reply.outcome == "unreadable":
            self.ledger.count("unreadable")
        return reply

    def _verify(self, named: str) -> None:
        """Hold the name that the server gives itself against the first one, of this run and of the kept replies."""
        if not named:
            return
        if self._first_name is None:
            known = self._served_as or (
                self._cache.served(self.fingerprint(), named) if self._cache is not None else named
            )
            self._first_name = known
        if named != self._first_name:
            raise self._client.stop(
                StopRunError(
                    "another model answers than before",
                    where=self.base_url,
                    expected=self._first_name,
                    got=repr(named[:80]),
                    fix="state the one that is meant (served_as: NAME), or use another cache for the new one",
                )
            )

    def close(self) -> None:
        """Close connections and the file of kept replies, and write the ledger's line."""
        self._closing()


def _close(client: Client, cache: ReplyCache | None, ledger: RequestLedger, model: str) -> None:
    """Close what is open; what was asked is added as a line to the ledger beside the cache."""
    client.close()
    if cache is None:
        return
    cache.close()
    counts = ledger.record()
    if counts.get("requests") or counts.get("cache_hits"):
        with cache.path.with_suffix(".ledger.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps({"model": model, **counts}) + "\n")


def _about_schemas(message: str) -> bool:
    return _SCHEMA_WORDS.search(message) is not None


def _capabilities(images: str, tools: bool) -> frozenset[str]:
    sight = {"pictures", "several_pictures"} if images == "sent" else set()
    return frozenset({"reply"} | sight | ({"tools"} if tools else set()))


def _checked(base_url: str, key_env: str | None, longest_side: int, concurrency: int) -> None:
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError("this is no address of a server", where="base_url", expected="http://HOST:PORT/v1")
    if parts.username or parts.password or parts.query:
        raise ConfigError(
            "an address in a run file may hold no password, user or query",
            where="base_url",
            fix="name the variable that holds the key: key_env: MY_KEY",
        )
    if key_env is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", key_env):
        raise ConfigError(
            "key_env is the name of a variable, not a key",
            where="key_env",
            expected="letters, digits and _",
            fix="export MY_KEY=... and write key_env: MY_KEY",
        )
    if longest_side < 1 or concurrency < 1:
        raise ConfigError("sizes and numbers of requests start at 1", where="longest_side, concurrency")
