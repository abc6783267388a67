"""A graph that remembers its users between conversations: `pip install "ricordo[langgraph]"`. No model is called."""

from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.store.base import BaseStore

from ricordo.integrations.langgraph import RicordoStore


class State(TypedDict):
    user: str
    said: str
    answer: str


def listen(state: State, *, store: BaseStore) -> dict[str, str]:
    """Answer from the memory, and store what was said, unless it is a question."""
    space = ("users", state["user"], "said")
    known = store.search(space, query=state["said"], limit=1)
    if not state["said"].endswith("?"):
        store.put(space, str(len(store.search(space, limit=1_000))), {"content": state["said"]})
    return {"answer": f"You said: {known[0].value['content']}" if known else "I did not know that."}


builder = StateGraph(State)
builder.add_node("listen", listen)
builder.add_edge(START, "listen")
builder.add_edge("listen", END)

with RicordoStore("graph.db") as store:
    graph = builder.compile(store=store)
    for user, said in (("ann", "I'm allergic to peanuts"), ("ann", "What must I not eat, peanuts?"), ("bob", "Hello")):
        print(graph.invoke({"user": user, "said": said, "answer": ""})["answer"])
