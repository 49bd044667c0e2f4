"""Requests to a local server that takes 50 ms each, eight at once: how near a run comes to what that permits.

``python perf/bench_api_chat.py 10000`` prints seconds, the share of what is permitted, and the growth of memory.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DELAY, AT_ONCE = 0.05, 8
BODY = json.dumps(
    {
        "model": "stub",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "no"}}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 1},
    }
).encode()


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(BODY)
    try:
        while True:
            header = await reader.readuntil(b"\r\n\r\n")
            length = int(header.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            await asyncio.sleep(DELAY)
            writer.write(head + BODY)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def _server() -> None:
    server = await asyncio.start_server(_serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def main(requests: int) -> None:
    from medground.models.base import Message
    from medground.models.chat.api_chat import ApiChat

    process = subprocess.Popen([sys.executable, __file__, "serve"], stdout=subprocess.PIPE, text=True)
    port = int(process.stdout.readline())
    with tempfile.TemporaryDirectory() as folder:
        url = f"http://127.0.0.1:{port}/v1"
        chat = ApiChat(base_url=url, model="stub", cache=Path(folder) / "c.sqlite3", concurrency=AT_ONCE)
        chat.reply([[Message("user", f"warm {i}")] for i in range(2 * AT_ONCE)])
        before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        chunk = 500  # as an engine asks: a chunk of items after the other
        for first in range(0, requests, chunk):
            chat.reply([[Message("user", f"q {i}")] for i in range(first, min(first + chunk, requests))])
        seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
        chat.close()
    process.kill()
    process.wait()
    permitted = requests * DELAY / AT_ONCE
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    growth = (after.ru_maxrss - before.ru_maxrss) / 1024
    print(f"{requests} requests: {seconds:.1f} s, {100 * permitted / seconds:.1f} % of what {AT_ONCE} at once permit")
    print(f"processor {1000 * cpu / requests:.2f} ms a request; memory grew by {growth:.1f} MB")


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        asyncio.run(_server())
    else:
        main(int(sys.argv[1]))
