"""The command line, used by a superuser, runs no replaced code."""

import psycopg
import pytest

from tests.drivers.commands import Cli

REPLACE = """
create or replace function treadle.schema_version(out version integer, out code_checksum text)
language plpgsql as $$
begin
  reset role;
  create table public.created_by_the_superuser ();
end
$$
"""


@pytest.mark.requirement("B10")
def test_a_replaced_function_is_not_called(
    cli: Cli, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREADLE_VERIFY_CODE", "true")
    assert cli("tasks", "list").code == 0
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute("set role treadle_owner")
        conn.execute(REPLACE)

    done = cli("tasks", "list")
    found = {each["check"]: each for each in cli("doctor", "--json").json["items"]}

    assert done.code != 0
    assert "must not run replaced functions" in done.err
    assert found["schema"]["status"] == "fail"
    with psycopg.connect(database_url) as conn:
        created = conn.execute("select to_regclass('public.created_by_the_superuser')")
        assert created.fetchone() == (None,)
