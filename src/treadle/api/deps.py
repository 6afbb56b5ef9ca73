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


async def _gateway(request: Request) -> Gateway:
    return await _app(request).gateway()


async def _reader(request: Request) -> Reader:
    return await _app(request).reader()


def _settings(request: Request) -> Settings:
    return _app(request).settings


App = Annotated[Treadle, Depends(_app)]
Calls = Annotated[Gateway, Depends(_gateway)]
Views = Annotated[Reader, Depends(_reader)]
Config = Annotated[Settings, Depends(_settings)]
