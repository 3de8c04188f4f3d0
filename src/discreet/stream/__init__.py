"""Releases that go on: sums that grow with every step, under one guarantee for all of them."""

from discreet.stream.stream import Stream

__all__ = ["Stream"]
