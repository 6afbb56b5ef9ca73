"""Send requests to a treadle server; what is safe to repeat is repeated until it is answered.

`again=True` says that a request may reach the server twice without a second effect. Then lost
connections, 429 and 502 to 504 are tried again with growing, jittered pauses, for `patience_s` in
all; a `Retry-After` is honoured. A full queue is told to the caller at once.
"""

from collections.abc import Mapping
from typing import Any, Self
from urllib.parse import urlsplit

import httpx2
import stamina

from treadle.client.errors import (
    ClientError,
    QueueFull,
    TooManyRequests,
    Unavailable,
    Unreachable,
    error_of,
)

TIMEOUT_S = 30.0
PATIENCE_S = 60.0
ATTEMPTS = 20
_AGAIN = (429, 502, 503, 504)


class _Base:
    """What both senders share."""

    def __init__(
        self,
        base_url: str,
        token: str | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
        patience_s: float = PATIENCE_S,
        transport: Any = None,
    ) -> None:
        self.base_url = checked_url(base_url)
        self._patience_s = patience_s
        headers = {"Accept": "application/json, application/problem+json"}
        if token is not None:
            if not token or not token.isascii() or not token.isprintable() or " " in token:
                raise ValueError("a token is one word of printable ASCII")
            headers["Authorization"] = f"Bearer {token}"
        # A redirect is not followed: the token is for this server alone.
        self._options: dict[str, Any] = {
            "headers": headers,
            "timeout": timeout_s,
            "transport": transport,
            "follow_redirects": False,
        }

    def _tries(self, again: bool) -> Any:
        return stamina.retry_context(
            on=self._when if again else _never,
            attempts=ATTEMPTS if again else 1,
            timeout=self._patience_s,
            wait_initial=0.1,
            wait_max=5.0,
            wait_jitter=0.2,
        )

    def _when(self, error: Exception) -> bool | float:
        """Whether to try again, or after how many seconds."""
        if isinstance(error, Unreachable):
            return True
        passing = isinstance(error, Unavailable | TooManyRequests) and error.status in _AGAIN
        if not passing or isinstance(error, QueueFull):
            return False
        assert isinstance(error, ClientError)
        after = error.retry_after
        if after is None:
            return True
        return False if after > self._patience_s else after

    def _url(self, path: str) -> str:
        return f"{self.base_url}{path}"


class Transport(_Base):
    """Sends requests, one at a time per thread; threads may share it."""

    def __init__(self, base_url: str, token: str | None = None, **options: Any) -> None:
        super().__init__(base_url, token, **options)
        self._client = httpx2.Client(**self._options)

    def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        params: Mapping[str, Any] | None = None,
        again: bool,
        timeout_s: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """The decoded answer, None for an empty one; raises a ClientError for any other."""
        for attempt in self._tries(again):
            with attempt:
                try:
                    answer = self._client.request(
                        method,
                        self._url(path),
                        json=json,
                        params=params,
                        timeout=_timeout(timeout_s),
                        headers=headers,
                    )
                except httpx2.RequestError as error:
                    raise _unreachable(self.base_url, error) from error
                return decoded(answer)
        raise AssertionError("a try ends with an answer or an error")

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncTransport(_Base):
    """The same for programs with an event loop."""

    def __init__(self, base_url: str, token: str | None = None, **options: Any) -> None:
        super().__init__(base_url, token, **options)
        self._client = httpx2.AsyncClient(**self._options)

    async def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        params: Mapping[str, Any] | None = None,
        again: bool,
        timeout_s: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """The decoded answer, None for an empty one; raises a ClientError for any other."""
        async for attempt in self._tries(again):
            with attempt:
                try:
                    answer = await self._client.request(
                        method,
                        self._url(path),
                        json=json,
                        params=params,
                        timeout=_timeout(timeout_s),
                        headers=headers,
                    )
                except httpx2.RequestError as error:
                    raise _unreachable(self.base_url, error) from error
                return decoded(answer)
        raise AssertionError("a try ends with an answer or an error")

    async def close(self) -> None:
        """Give the connections back."""
        await self._client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def checked_url(text: str) -> str:
    """A base URL without its last slash; it carries no credentials."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"no http or https URL: {text!r}")
    if parts.username is not None or parts.password is not None:
        raise ValueError("a URL carries no user or password; pass token=")
    if parts.query or parts.fragment:
        raise ValueError(f"a base URL has no query and no fragment: {text!r}")
    return text.rstrip("/")


def decoded(answer: httpx2.Response) -> Any:
    """The JSON of a success; an error as its exception."""
    if answer.is_success and not answer.content:
        return None
    try:
        found = answer.json()
    except ValueError:
        found = None
        if answer.is_success:
            kind = answer.headers.get("content-type")
            message = f"the answer to {answer.request.url.path} is no JSON but {kind}"
            raise ClientError(message, status=answer.status_code) from None
    if answer.is_success:
        return found
    problem = found if isinstance(found, dict) else {}
    after = answer.headers.get("retry-after", "")
    if "retry_after" not in problem and after.isascii() and after.isdigit():
        problem["retry_after"] = int(after)
    raise error_of(answer.status_code, problem)


def _unreachable(url: str, error: httpx2.RequestError) -> Unreachable:
    return Unreachable(f"no answer from {url}: {type(error).__name__}: {error}".rstrip(": "))


def _timeout(seconds: float | None) -> Any:
    return httpx2.USE_CLIENT_DEFAULT if seconds is None else seconds


def _never(_: Exception) -> bool:
    return False
