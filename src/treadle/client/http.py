"""Send requests to a treadle server and retry those that are safe to repeat.

`again=True` means that the request has no second effect if it reaches the server twice. Then lost
connections, 429 and 502 to 504 are retried with exponential backoff and jitter, for at most
`patience_s` in total; `Retry-After` is respected. A full queue is reported at once.
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
    """The parts that both transports share."""

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
                raise ValueError("the token must be printable ASCII without spaces")
            headers["Authorization"] = f"Bearer {token}"
        # Redirects are not followed: the token must not reach another server.
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
        """Return whether to retry, or after how many seconds."""
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
    """Sends requests; threads may share one instance."""

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
        """Return the decoded response, None if it is empty; raise a ClientError on failure."""
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
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncTransport(_Base):
    """The async version of `Transport`."""

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
        """Return the decoded response, None if it is empty; raise a ClientError on failure."""
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
        raise AssertionError("unreachable")

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def checked_url(text: str) -> str:
    """Validate a base URL and return it without a trailing slash."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"not an http or https URL: {text!r}")
    if parts.username is not None or parts.password is not None:
        raise ValueError("the URL must not contain a user or password; pass token=")
    if parts.query or parts.fragment:
        raise ValueError(f"the base URL must not have a query or fragment: {text!r}")
    return text.rstrip("/")


def decoded(answer: httpx2.Response) -> Any:
    """Return the JSON of a successful response; raise the exception for an error."""
    if answer.is_success and not answer.content:
        return None
    try:
        found = answer.json()
    except ValueError:
        found = None
        if answer.is_success:
            kind = answer.headers.get("content-type")
            message = f"the response to {answer.request.url.path} is not JSON but {kind}"
            raise ClientError(message, status=answer.status_code) from None
    if answer.is_success:
        return found
    problem = found if isinstance(found, dict) else {}
    after = answer.headers.get("retry-after", "")
    if "retry_after" not in problem and after.isascii() and after.isdigit():
        problem["retry_after"] = int(after)
    raise error_of(answer.status_code, problem)


def _unreachable(url: str, error: httpx2.RequestError) -> Unreachable:
    return Unreachable(f"no response from {url}: {type(error).__name__}: {error}".rstrip(": "))


def _timeout(seconds: float | None) -> Any:
    return httpx2.USE_CLIENT_DEFAULT if seconds is None else seconds


def _never(_: Exception) -> bool:
    return False
