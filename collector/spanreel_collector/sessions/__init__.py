"""Traces that were put right, written down as sessions; what may be replayed of them."""
