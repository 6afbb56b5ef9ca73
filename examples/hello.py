"""The smallest application.

    treadle dev examples.hello:app
    treadle tasks enqueue hello '{"name": "Ada"}' --wait

The second line goes into another terminal, after the `export` that the first one prints.
"""

from treadle import Treadle

app = Treadle()


@app.task
async def hello(name: str) -> str:
    """Greet somebody."""
    return f"Hello, {name}!"
