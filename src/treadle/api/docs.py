"""The page at /docs: the OpenAPI document for people, with everything it needs from this server.

Its files are in `static/`; those in `static/vendor/` come from the packages of `vendor.lock`. The
page has no inline script or style, so its policy allows none. There is nothing here that the
source of treadle does not show, so it is answered without a token.
"""

import gzip
import hashlib
from functools import cache
from pathlib import Path
from typing import NamedTuple

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

STATIC = Path(__file__).parent / "static"
SWAGGER = "vendor/swagger-ui-dist"
PAGE = "docs.html"
# By the last part of its path, so that nothing in a request names a file.
FILES = {
    "docs.js": "docs.js",
    "swagger-ui-bundle.js": f"{SWAGGER}/swagger-ui-bundle.js",
    "swagger-ui.css": f"{SWAGGER}/swagger-ui.css",
}
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}
POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

router = APIRouter(include_in_schema=False)


class Asset(NamedTuple):
    """A file as it is sent."""

    plain: bytes
    packed: bytes
    digest: str
    media_type: str


@cache
def asset(name: str) -> Asset:
    """A file of `static/`, read and compressed once."""
    path = STATIC / name
    plain = path.read_bytes()
    # The same bytes from every server, whenever it was started.
    packed = gzip.compress(plain, mtime=0)
    return Asset(plain, packed, hashlib.sha256(plain).hexdigest()[:32], TYPES[path.suffix])


@router.get("/docs")
def docs(request: Request) -> Response:
    """The page."""
    return _send(request, asset(PAGE))


@router.get("/docs/{name}")
def file(request: Request, name: str) -> Response:
    """A file that the page needs."""
    if name not in FILES:
        raise HTTPException(404)
    return _send(request, asset(FILES[name]))


def _send(request: Request, found: Asset) -> Response:
    """Whole, or only that nothing has changed: a browser asks each time, and an upgrade is seen."""
    packs = "gzip" in request.headers.get("accept-encoding", "")
    tag = f'"{found.digest}-gzip"' if packs else f'"{found.digest}"'
    headers = {**HEADERS, "Cache-Control": "no-cache", "ETag": tag, "Vary": "Accept-Encoding"}
    if tag in request.headers.get("if-none-match", ""):
        return Response(None, 304, headers)
    if packs:
        headers["Content-Encoding"] = "gzip"
    body = found.packed if packs else found.plain
    return Response(body, 200, headers, found.media_type)
