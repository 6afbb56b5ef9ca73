"""The worker: claim, run, answer."""
