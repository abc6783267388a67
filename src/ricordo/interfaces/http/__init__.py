"""The HTTP door: REST, JSON-RPC and MCP for programs, each made from the catalog. It is the extra `ricordo[server]`."""
