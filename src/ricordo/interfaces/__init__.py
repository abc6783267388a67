"""Interfaces: the ways programs and people reach a memory (CLI, MCP, HTTP, tools). None of them decides anything."""
