"""What routes ask for: the functions and the views of the database."""

from typing import Annotated

from fastapi import Depends, Request

from treadle.app import Treadle
from treadle.db.gateway import Gateway
from treadle.db.reader import Reader
from treadle.settings import Settings


def _app(request: Request) -> Treadle:
    app: Treadle = request.app.state.treadle
    return app


# Coroutines all of them: FastAPI would take plain functions to another thread.
async def _whole(request: Request) -> Treadle:
    return _app(request)


async def gateway(request: Request) -> Gateway:
    return await _app(request).gateway()


async def _reader(request: Request) -> Reader:
    return await _app(request).reader()


async def _settings(request: Request) -> Settings:
    return _app(request).settings


App = Annotated[Treadle, Depends(_whole)]
Calls = Annotated[Gateway, Depends(gateway)]
Views = Annotated[Reader, Depends(_reader)]
Config = Annotated[Settings, Depends(_settings)]
