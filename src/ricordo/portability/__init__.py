"""Import and export of other programs' files. Here are the names of the formats: `--help` needs no more of it."""

IMPORTED = (
    "jsonl",
    "markdown",
    "memories-jsonl",
    "memories-sqlite",
    "mcp",
    "mem0",
    "langgraph",
    "zep",
    "letta",
    "chatgpt",
    "claude",
    "claude-code",
    "codex",
    "cursor",
    "gemini-cli",
    "opencode",
    "telegram",
    "whatsapp",
    "slack",
    "chat",
    "locomo",
)

EXPORTED = ("jsonl", "markdown", "mcp")
