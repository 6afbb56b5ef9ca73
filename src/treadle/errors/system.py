"""What is wrong with the surroundings: schema, rights, connections, settings."""

from collections.abc import Iterator
from contextlib import contextmanager

from treadle.errors.base import TreadleError


class SchemaError(TreadleError):
    """The schema in the database and this code do not fit."""

    http_status = 503
    code = "schema"


class SchemaMissing(SchemaError):
    """The database has no treadle schema."""

    sqlstate = "TR301"


class SchemaTooNew(SchemaError):
    """The schema was made by a newer treadle."""

    sqlstate = "TR302"


class SchemaOutdated(SchemaError):
    """The schema was made by an older treadle."""

    sqlstate = "TR303"


class MigrationChanged(SchemaError):
    """A migration that is applied differs from its file."""

    sqlstate = "TR304"


class RolesMissing(SchemaError):
    """The treadle roles are missing and this login may not create them."""

    sqlstate = "TR305"


class Forbidden(TreadleError):
    """The login may not do this."""

    sqlstate = "42501"
    http_status = 403


class Unauthenticated(TreadleError):
    """There is no token, or none that is valid."""

    sqlstate = "TR401"
    http_status = 401


class TooManyRequests(TreadleError):
    """The caller makes more requests than it may; `retry_after_s` says when to come again."""

    sqlstate = "TR429"
    http_status = 429


class Unavailable(TreadleError):
    """The database cannot be reached or did not answer in time."""

    exit_code = 6
    http_status = 503


class DatabaseError(TreadleError):
    """PostgreSQL refused a call for a reason that treadle does not know."""

    code = "database"


class StoreError(TreadleError):
    """The store of artifacts cannot be reached, or refused."""

    exit_code = 6
    http_status = 503
    code = "store"


class ConfigurationError(TreadleError):
    """A setting, a file or an application path is wrong."""

    exit_code = 2
    code = "configuration"


class MissingExtra(ConfigurationError):
    """An optional dependency is needed and not installed."""


@contextmanager
def extra(name: str, problem: str, instead: str = "") -> Iterator[None]:
    """Around imports that need an extra: `with extra("cron", "cron lines need cronsim"): …`."""
    try:
        yield
    except ImportError:
        raise MissingExtra(problem, hint=f"pip install 'treadle[{name}]'{instead}") from None
