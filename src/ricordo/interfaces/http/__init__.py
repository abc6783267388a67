"""REST, JSON-RPC and MCP over HTTP."""
