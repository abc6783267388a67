"""An agent of the OpenAI Agents SDK with a memory and a session: `pip install "ricordo[openai-agents]"`. A class stands
in for the model, so that the example runs without an API key.
"""

import asyncio
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from ricordo import Memory
from ricordo.integrations.openai_agents import RicordoSession, memory_filter, memory_tools


class Stub(Model):
    """A scripted model: reports what its instructions say about peanuts."""

    async def get_response(self, system_instructions: str | None, *args: Any, **options: Any) -> ModelResponse:
        text = "No peanuts for Ann." if "allergic to peanuts" in (system_instructions or "") else "I do not know."
        part = ResponseOutputText(text=text, type="output_text", annotations=[])
        message = ResponseOutputMessage(id="m", content=[part], role="assistant", status="completed", type="message")
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError


async def main() -> None:
    async with Memory.open("agent.db") as memory:
        agent = Agent(name="helper", instructions="Be brief.", model=Stub(), tools=memory_tools(memory))
        config = RunConfig(call_model_input_filter=memory_filter(memory), tracing_disabled=True)
        await memory.remember("Ann is allergic to peanuts", about=["Ann"])
        session = RicordoSession("dinner", memory)
        result = await Runner.run(agent, "What is Ann allergic to?", session=session, run_config=config)
        print(result.final_output)
        print(len(await session.get_items()), "items in the session")


asyncio.run(main())
