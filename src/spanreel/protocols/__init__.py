"""How providers write exchanges: one module each, read and write, plain and streamed, no I/O."""
