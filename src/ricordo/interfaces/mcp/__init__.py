"""The MCP server, and the configuration of MCP clients."""
