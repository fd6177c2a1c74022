"""Benchmarks: each figure beside its target. `python -m bench` runs them all, `python -m bench lessons` one.

A module here is a benchmark: its main() prints rows and returns 0 if all targets are met, 1 if one is missed, and 2 if
it cannot run on this machine. Names that begin with an underscore are helpers.
"""
