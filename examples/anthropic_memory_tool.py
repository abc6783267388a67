"""Claude's memory tool on Ricordo: `pip install "ricordo[anthropic-memory]"`. A function stands in for the server, so
that the example runs without an API key.
"""

import asyncio
import itertools
import json
from typing import Any

import httpx2
from anthropic import AsyncAnthropic

from ricordo import Memory
from ricordo.integrations.anthropic_memory import RicordoMemoryTool

NOTE = "/memories/ann.md"
SCRIPT: list[dict[str, Any]] = [
    {"command": "create", "path": NOTE, "file_text": "Ann is allergic to peanuts\n"},
    {"command": "str_replace", "path": NOTE, "old_str": "peanuts", "new_str": "peanuts and figs"},
    {"command": "view", "path": NOTE},
]
ASKED = itertools.count()


def server(request: httpx2.Request) -> httpx2.Response:
    """Call the tool as scripted, then report the result of the last call."""
    messages, done = json.loads(request.content)["messages"], next(ASKED)
    if done < len(SCRIPT):
        content = [{"type": "tool_use", "id": f"t{done}", "name": "memory", "input": SCRIPT[done]}]
    else:
        content = [{"type": "text", "text": f"I know: {messages[-1]['content'][0]['content']}"}]
    message = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "stub",
        "content": content,
        "stop_reason": "tool_use" if done < len(SCRIPT) else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    return httpx2.Response(200, json=message)


async def main() -> None:
    web = httpx2.AsyncClient(transport=httpx2.MockTransport(server))
    async with Memory.open("agent.db") as memory, AsyncAnthropic(api_key="none", http_client=web) as client:
        runner = client.beta.messages.tool_runner(
            model="stub",
            max_tokens=1_000,
            tools=[RicordoMemoryTool(memory)],
            messages=[{"role": "user", "content": "Ann must not eat peanuts, nor figs. What do you know of her?"}],
        )
        final = await runner.until_done()
        print(final.content[0].text)
        print((await memory.search("figs")).hits[0].content)


asyncio.run(main())
