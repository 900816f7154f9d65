"""A policy applied to what was exported or converted before."""
