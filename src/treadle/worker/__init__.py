"""The worker: claims tasks, runs their handlers, reports the results."""
