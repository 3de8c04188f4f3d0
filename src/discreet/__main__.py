"""Lets `python -m discreet` run the command line."""

from discreet.cli import main

main()
