"""The pages at / and /docs: links, and the OpenAPI document in Swagger UI without other hosts.

Its files are in `static/`; those in `static/vendor/` come from the packages of `vendor.lock`. The
pages have no inline script or style, and their Content-Security-Policy allows none. They need no
token, because they show nothing that is not in the public source.

Starlette's StaticFiles would do most of this. It makes ETags from the time of a file, which differs
between servers, and compresses the 1.5 MB of Swagger UI again for each request.
"""

import gzip
import hashlib
from functools import cache
from pathlib import Path
from typing import NamedTuple

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

STATIC = Path(__file__).parent / "static"
SWAGGER = "vendor/swagger-ui-dist"
PAGE = "docs.html"
INDEX = "index.html"
# The same links for programs, relative to the address of the index.
LINKS = {
    "docs": "docs",
    "openapi": "openapi.json",
    "problems": "problems",
    "status": "status",
    "health": "health",
}
# By the last part of the URL: a request cannot name any other file.
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
    """A file, plain and compressed."""

    plain: bytes
    packed: bytes
    digest: str
    media_type: str


@cache
def asset(name: str) -> Asset:
    """Read and compress a file of `static/` once."""
    path = STATIC / name
    plain = path.read_bytes()
    # Without a time, so that every server sends the same bytes.
    packed = gzip.compress(plain, mtime=0)
    return Asset(plain, packed, hashlib.sha256(plain).hexdigest()[:32], TYPES[path.suffix])


@router.get("/")
def index(request: Request) -> Response:
    """Send links to the other pages: HTML for browsers, JSON for programs."""
    if "text/html" in request.headers.get("accept", ""):
        response = _send(request, asset(INDEX))
    else:
        response = JSONResponse(LINKS, headers=HEADERS)
    response.headers.add_vary_header("Accept")
    return response


@router.get("/docs")
def docs(request: Request) -> Response:
    """Send the page."""
    return _send(request, asset(PAGE))


@router.get("/docs/{name}")
def file(request: Request, name: str) -> Response:
    """Send a file that the page needs."""
    if name not in FILES:
        raise HTTPException(404)
    return _send(request, asset(FILES[name]))


def _send(request: Request, found: Asset) -> Response:
    """Send a file, or 304 if the browser has it; browsers ask each time, so they see upgrades."""
    packs = "gzip" in request.headers.get("accept-encoding", "")
    tag = f'"{found.digest}-gzip"' if packs else f'"{found.digest}"'
    headers = {**HEADERS, "Cache-Control": "no-cache", "ETag": tag, "Vary": "Accept-Encoding"}
    if tag in request.headers.get("if-none-match", ""):
        return Response(None, 304, headers)
    if packs:
        headers["Content-Encoding"] = "gzip"
    body = found.packed if packs else found.plain
    return Response(body, 200, headers, found.media_type)
