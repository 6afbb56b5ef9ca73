"""A migration needs no superuser, and treadle_owner owns everything it creates."""

from collections.abc import Iterator

import psycopg
import pytest

from tests.drivers import runners
from tests.drivers.databases import OwnServer
from treadle.db.install import schema
from treadle.db.install.migrate import migrate, status
from treadle.errors import Forbidden, RolesMissing


@pytest.fixture
def login(server_url: str, empty_database_url: str, template: str) -> Iterator[str]:
    """A login without any right; the roles exist on this server."""
    with psycopg.connect(empty_database_url, autocommit=True) as conn:
        name = f"{conn.info.dbname}_login"
        conn.execute(f"create role {name} login".encode())
        yield name
        conn.execute(f"drop owned by {name}".encode())
        conn.execute(f"drop role {name}".encode())


def url_as(url: str, name: str) -> str:
    """The same database as another login."""
    return f"{url}{'&' if '?' in url else '?'}user={name}"


def grant(url: str, *rights: str) -> None:
    """Give rights as a superuser."""
    with psycopg.connect(url, autocommit=True) as conn:
        for right in rights:
            conn.execute(f"grant {right}".encode())


@pytest.mark.requirement("B12")
def test_a_member_of_treadle_owner_that_may_create_in_the_database_can_migrate(
    empty_database_url: str, login: str
) -> None:
    with psycopg.connect(empty_database_url) as conn:
        database = conn.info.dbname
    grant(empty_database_url, f"create on database {database} to {login}")
    grant(empty_database_url, f"treadle_owner to {login}")

    result = migrate(url_as(empty_database_url, login))

    assert result.version == runners.LATEST
    assert runners.described(empty_database_url) == schema.snapshot()
    assert {row.applied_by for row in status(empty_database_url).applied} == {login}


def test_a_login_without_rights_gets_an_error_that_names_them(
    empty_database_url: str, database_url: str, login: str
) -> None:
    with pytest.raises(Forbidden, match=r"permission|admin option") as raised:
        migrate(url_as(empty_database_url, login))
    assert "treadle_owner" in (raised.value.hint or "")

    with pytest.raises(Forbidden, match="permission denied") as raised:
        status(url_as(database_url, login))
    assert "treadle_owner" in (raised.value.hint or "")


def test_on_a_new_server_createrole_is_enough(own_server: OwnServer) -> None:
    server = own_server(fsync="off")
    with psycopg.connect(server.url(), autocommit=True) as conn:
        conn.execute("create role admin login createrole")
        conn.execute("create role guest login")
    grant(server.url(), "create on database postgres to admin, guest")

    with pytest.raises(RolesMissing, match="treadle_owner") as raised:
        migrate(url_as(server.url(), "guest"))
    assert "roles.sql" in (raised.value.hint or "")
    assert raised.value.detail == {"role": "treadle_owner"}
    assert migrate(url_as(server.url(), "admin")).version == runners.LATEST

    assert runners.described(server.url()) == schema.snapshot()
