"""Import and export of other programs' files. It holds only the names of the formats, so `--help` loads fast."""

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
