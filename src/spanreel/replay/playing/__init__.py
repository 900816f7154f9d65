"""One session in the place of the world: what answers runs, model calls and tool calls."""
