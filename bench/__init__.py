"""Benchmarks: treadle beside its peers, and the figures that treadle promises of itself.

`python -m bench` from the project root; see docs/explanation/benchmarks.md. Timings live here and
not in the tests: they are ratios inside one run, because machines are noisy.
"""
