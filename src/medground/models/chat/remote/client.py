"""Sending one request until it is answered: retries, waits, a deadline, and faults that stop a run.

Only what may pass is sent again: 408, 409, 429, 5xx, time-outs, dropped connections, damaged bodies. A key is read from
the environment when a request is sent, stands in no attribute that is printed, and is cut out of whatever comes back.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2

from medground.models.base import Reply
from medground.models.chat.remote.ledger import RequestLedger
from medground.models.chat.remote.limits import Concurrency, RateLimit
from medground.models.chat.remote.wire import MalformedError, reply_of
from medground.spending import StopRunError

RETRIED = frozenset({408, 409, 429, *range(500, 600)})
FATAL = frozenset({401, 403, 404})
_MOST_BYTES = 64 * 2**20  # of a server's answer


@dataclass(frozen=True)
class Patience:
    """How long and how often a request is tried.

    Attributes:
        max_tries: in all.
        timeout: seconds a try may take, from sending to the last byte.
        max_wait: seconds: a longer wait that the server asks for ends the request at once.
        base_wait: seconds before the second try, doubled each time, with jitter.
    """

    max_tries: int = 6
    timeout: float = 120.0
    max_wait: float = 120.0
    base_wait: float = 0.5


@dataclass(frozen=True)
class _Fault:
    """Why a try failed."""

    kind: str  # timeout or error
    reason: str
    again: bool
    status: int = 0
    wait: float | None = None


class Client:
    """Sends requests to one endpoint. Thread-safe.

    Args:
        base_url: such as ``http://127.0.0.1:8000/v1``.
        key_env: name of the environment variable that holds the key; None: no key is sent.
        patience: of each request.
        concurrency: how many requests may be on their way.
        requests_per_minute: see :class:`RateLimit`.
        ledger: counts.
        run_deadline: seconds from the first request, after which the run stops; None: none.
    """

    def __init__(
        self,
        base_url: str,
        key_env: str | None,
        patience: Patience,
        concurrency: Concurrency,
        requests_per_minute: float | None,
        ledger: RequestLedger,
        run_deadline: float | None = None,
    ) -> None:
        self.base_url, self.key_env, self.patience = base_url.rstrip("/"), key_env, patience
        self.concurrency, self.ledger, self.run_deadline = concurrency, ledger, run_deadline
        self._rate = RateLimit(requests_per_minute)
        self._started: float | None = None
        self._stopped: StopRunError | None = None
        limits = httpx2.Limits(max_connections=concurrency.most, max_keepalive_connections=concurrency.most)
        self._http = httpx2.Client(limits=limits, follow_redirects=False, trust_env=True)
        self._address = httpx2.URL(f"{self.base_url}/chat/completions")  # read once, not at every request

    def send(
        self,
        body: dict[str, Any],
        *,
        begin: Callable[[], None] = lambda: None,
        take: Callable[[Reply], None] = lambda _: None,
        accept_400: Callable[[str], bool] | None = None,
    ) -> Reply | None:
        """Send one request until it is answered or given up.

        Args:
            body: of the request.
            begin: called when the request's turn has come, before it is sent for the first time.
            take: is handed the reply before another request takes this one's place.
            accept_400: says of a 400's or 422's message whether it means that a feature is missing; the result is
                None then.

        Returns:
            The reply: ``ok`` or ``refusal``; ``timeout`` or ``error`` where it was given up.

        Raises:
            StopRunError: no further request can succeed.
        """
        data = json.dumps(body, sort_keys=True, ensure_ascii=True).encode()
        fault = _Fault("error", "nothing was tried", again=False)
        for attempt in range(self.patience.max_tries):
            self.ledger.wait(self._rate.take())
            with self.concurrency:
                self._check()  # another request may have stopped the run while this one waited
                if attempt == 0:
                    begin()
                self.ledger.count("requests")
                got = self._once(data)
                if isinstance(got, Reply):
                    take(got)
            if isinstance(got, Reply):
                self.concurrency.grow()
                return got
            fault = got
            if fault.status == 429:
                self.concurrency.shrink()
            if fault.status in (400, 422) and accept_400 is not None and accept_400(fault.reason):
                return None
            if not fault.again or not self._wait(fault, attempt):
                break
        return self._given_up(fault)

    def _wait(self, fault: _Fault, attempt: int) -> bool:
        """Wait before the next try; False where there is none."""
        if attempt + 1 >= self.patience.max_tries:
            return False
        wait = fault.wait
        if wait is not None and wait > self.patience.max_wait:
            return False
        if wait is None:
            bound = min(self.patience.max_wait, self.patience.base_wait * 2**attempt)
            wait = random.uniform(bound / 2, bound)  # noqa: S311  (no secret)
        self.ledger.count("retries")
        self.ledger.wait(wait)
        time.sleep(wait)
        return True

    def _given_up(self, fault: _Fault) -> Reply:
        reason = fault.reason
        if fault.wait is not None and fault.wait > self.patience.max_wait:
            reason = f"the server asks for a wait of {fault.wait:.0f} s, more than {self.patience.max_wait:g} s"
        if fault.status in FATAL:
            raise self.stop(self._fatal(fault.status, reason))
        if "content_filter" in reason:
            return Reply("", "refusal", "content_filter", finish="content_filter")
        self.ledger.count("timeouts" if fault.kind == "timeout" else "errors")
        return Reply("", "timeout" if fault.kind == "timeout" else "error", reason, finish="error")

    def _fatal(self, status: int, reason: str) -> StopRunError:
        what = {
            401: "the server does not accept the key",
            403: "the server does not let this key use the model",
            404: "the server knows no such model or address",
        }[status]
        fix = "look at base_url and model"
        if status in (401, 403):
            fix = f"set the variable {self.key_env}" if self.key_env else "name the key's variable: key_env: MY_KEY"
        offered = self.offered() if status == 404 else None
        return StopRunError(
            what, where=self.base_url, expected=offered and f"one of {offered}", got=f"{status}: {reason}", fix=fix
        )

    def offered(self) -> str | None:
        """Return the names of the models that the server offers, at most ten; None where it does not say."""
        try:
            answer = self._http.get(f"{self.base_url}/models", headers=self._headers(), timeout=10)
            names = [str(entry["id"])[:80] for entry in answer.json()["data"]]
        except (httpx2.HTTPError, ValueError, KeyError, TypeError):
            return None
        return self._clean(", ".join(names[:10])) or None

    def stop(self, error: StopRunError) -> StopRunError:
        """Let every further request raise this error."""
        self._stopped = error
        return error

    def _check(self) -> None:
        if self._stopped is not None:
            raise self._stopped
        now = time.monotonic()
        self._started = self._started or now
        if self.run_deadline is not None and now - self._started > self.run_deadline:
            raise self.stop(
                StopRunError(
                    "the deadline for requests of this run has passed",
                    where="run_deadline",
                    expected=f"{self.run_deadline:g} s",
                    fix="replies so far are kept: run again, or raise run_deadline",
                )
            )

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self.key_env is None:
            return headers
        key = os.environ.get(self.key_env, "")
        if not key:
            raise self.stop(
                StopRunError(
                    "the variable that is to hold the server's key is not set",
                    where="key_env",
                    got=self.key_env,
                    fix=f"export {self.key_env}=...",
                )
            )
        return {**headers, "Authorization": f"Bearer {key}"}

    def _once(self, data: bytes) -> Reply | _Fault:
        end = time.monotonic() + self.patience.timeout
        headers = self._headers()
        timeout = httpx2.Timeout(self.patience.timeout)
        try:
            with self._http.stream("POST", self._address, content=data, headers=headers, timeout=timeout) as answer:
                parts, size = [], 0
                for part in answer.iter_bytes():
                    parts.append(part)
                    size += len(part)
                    if time.monotonic() > end:
                        return _Fault("timeout", "timeout", again=True)
                    if size > _MOST_BYTES:
                        return _Fault("error", "the answer is too large", again=False)
                return self._read(answer.status_code, answer.headers.get("Retry-After"), b"".join(parts))
        except httpx2.TimeoutException:
            return _Fault("timeout", "timeout", again=True)
        except httpx2.HTTPError as error:
            return _Fault("error", f"connection: {type(error).__name__}", again=True)

    def _read(self, status: int, retry_after: str | None, content: bytes) -> Reply | _Fault:
        try:
            body = json.loads(content)
        except (ValueError, RecursionError):
            body = None
        if status != 200:
            again = status in RETRIED
            wait = _seconds(retry_after) if again else None
            return _Fault("error", f"status {status}: {self._clean(_message(body))}", again, status, wait)
        if body is None:
            return _Fault("error", "the answer is no JSON", again=True)
        try:
            return reply_of(body)
        except (MalformedError, RecursionError) as error:
            return _Fault("error", str(error) or "malformed", again=True)

    def _clean(self, text: str) -> str:
        """Return a server's words without the key, control characters or great length."""
        key = os.environ.get(self.key_env, "") if self.key_env else ""
        if key:
            text = text.replace(key, "[key]")
        return "".join(c if c.isprintable() else " " for c in text)[:300]

    def close(self) -> None:
        """Close the connections."""
        self._http.close()


def _message(body: Any) -> str:
    """Return what an error body says, and its code."""
    error = body.get("error", body) if isinstance(body, dict) else None
    if isinstance(error, dict):
        code = error.get("code")
        named = f" ({code})" if isinstance(code, str) else ""
        return f"{error.get('message', 'no message')}{named}"
    return error if isinstance(error, str) else "no message"


def _seconds(stated: str | None) -> float | None:
    """Return the seconds of a ``Retry-After``: a number, or a date."""
    if stated is None:
        return None
    try:
        return max(0.0, float(stated))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(stated).timestamp() - time.time())
    except (ValueError, TypeError):
        return None
