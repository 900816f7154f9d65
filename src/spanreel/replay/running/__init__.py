"""Replays as people start them: from Python, from the command line, of one session or many."""
