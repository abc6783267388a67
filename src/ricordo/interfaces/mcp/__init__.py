"""The MCP door: tools, resources and prompts for agents, made from the catalog. Its SDK is the extra `ricordo[mcp]`."""
