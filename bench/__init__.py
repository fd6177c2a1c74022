"""Benchmarks: ratios measured side by side in one run, each beside its target."""
