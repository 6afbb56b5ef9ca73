"""Find the route of a request by its first words, then among the few that begin with them.

Routes are tried one after the other, and there are many: without this, the last ones would pay for
all that stand before them.
"""

from collections.abc import Sequence

from starlette.routing import BaseRoute, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send


class Dispatch:
    """Tries only the routes that begin as the path does; where there are none, all."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._all: ASGIApp = router.middleware_stack
        self._parts = {
            key: Router(
                [route for route in router.routes if begin(route) in (key, None)],
                redirect_slashes=router.redirect_slashes,
            )
            for key in {begin(route) for route in router.routes} - {None}
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        part = self._parts.get(_first(route_path(scope))) if scope["type"] == "http" else None
        if part is None:
            await self._all(scope, receive, send)
            return
        scope["router"] = self._router
        await part.app(scope, receive, send)


def spread(router: Router) -> None:
    """Let a router find its routes quickly; to be called when it has them all."""
    router.middleware_stack = Dispatch(router)


def methods(routes: Sequence[BaseRoute], scope: Scope) -> set[str]:
    """What a path can be asked for, of all its routes: Starlette says it of one."""
    path = route_path(scope)
    fitting = [
        route for route in routes if isinstance(route, Route) and route.path_regex.match(path)
    ]
    return {method for route in fitting for method in route.methods or ()}


def route_path(scope: Scope) -> str:
    """The path as the routes see it: without the prefix that the application is mounted under."""
    path: str = scope["path"]
    prefix: str = scope.get("root_path", "")
    return path[len(prefix) :] if prefix and path.startswith(prefix + "/") else path


def begin(route: BaseRoute) -> str | None:
    """The first words of a route's path; None when they are not fixed."""
    key = _first(str(getattr(route, "path", "{")))
    return None if "{" in key else key


def _first(path: str) -> str:
    words: Sequence[str] = path.split("/", 3)
    return "/".join(words[1:3] if words[1:2] == ["v1"] else words[1:2])
