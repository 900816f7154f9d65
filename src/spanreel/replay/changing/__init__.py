"""What becomes different in a replay: changes to the agent's requests, and what answers its tools."""
