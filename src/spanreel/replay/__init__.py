"""The replay of a recorded session: matching, answers, verdicts. Public through `spanreel.replay(...)`."""
