"""A recording as a replay uses it up, and which recorded call each live call is."""
