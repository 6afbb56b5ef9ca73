"""One adapter per system under test, with one interface, each run in its own environment.

An adapter is a module (or, for Node, a `.mjs` file) with:

* `DISTRIBUTION`: the package whose version is reported.
* `UNFINISHED`: SQL that answers whether a job is left that is not committed as finished.
* `install(url)`: the peer's own schema in an empty database.
* `producer(url)`: an open producer; the value is `push(numbers)`, one bulk call.
* `worker(url, slots, handle)`: a running worker that calls `handle(number)` for each job.

An adapter contains only the peer's documented fast settings; `__main__` measures the time.
"""
