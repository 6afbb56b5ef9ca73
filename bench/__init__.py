"""Benchmarks: treadle compared with other queues, and with its own goals.

Run `python -m bench` in the project root; see docs/explanation/benchmarks.md. Timings are here and
not in the tests. They are ratios within one run, because the speed of machines varies.
"""
