"""The engine: exact integer sums over private rows, and one door at which noise is added."""
