"""Interfaces to a memory: CLI, MCP, HTTP and tools. They contain no rules of their own about memories."""
