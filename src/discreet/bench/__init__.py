"""Measured comparisons: what structures cost and how far off they are."""
