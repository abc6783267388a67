"""The names of formats, apart from what reads and writes them: a command's help need not load it."""

IMPORTED = (
    "jsonl",
    "markdown",
    "memories-jsonl",
    "memories-sqlite",
    "mcp",
    "mem0",
    "langgraph",
    "chatgpt",
    "claude",
    "chat",
    "locomo",
)

EXPORTED = ("jsonl", "markdown", "mcp")
