"""`spanreel serve`: the process that keeps spans, and makes sessions of them as they come."""
