"""`treadle tokens`: create, list and revoke tokens; the token itself is shown once."""

import re

import pytest

from tests.drivers.commands import Cli
from tests.drivers.tokens import SHAPE


@pytest.mark.requirement("B10")
def test_a_token_is_all_that_is_printed_and_shown_once(cli: Cli) -> None:
    made = cli("tokens", "create", "ci", "--scope", "read", "--scope", "enqueue", "--queue", "mail")
    assert made.code == 0
    text = made.out.removesuffix("\n")
    assert re.fullmatch(SHAPE, text)
    assert "not shown again" in made.err
    assert text not in made.err

    for words in ([], ["list"], ["list", "--json"], ["list", "--revoked"]):
        shown = cli("tokens", *words)
        assert shown.code == 0
        assert text[17:] not in shown.out + shown.err
    [found] = cli("tokens", "--json").json["items"]
    assert (found["name"], found["status"], found["id"]) == ("ci", "live", text.split("_")[1])
    assert found["scopes"] == ["read", "enqueue"]
    assert found["queues"] == ["mail"]
    assert found["expires_at"] is None


def test_a_token_for_programs_comes_with_what_it_is_for(cli: Cli) -> None:
    cli("projects", "create", "site")
    made = cli(
        *("tokens", "create", "steve", "--scope", "work", "--agent", "steve-w"),
        *("--project", "site", "--expires", "90d", "--json"),
    )

    assert made.code == 0
    assert re.fullmatch(SHAPE, made.json["token"])
    assert made.json["id"] == made.json["token"].split("_")[1]
    assert (made.json["name"], made.json["expires_s"]) == ("steve", 90 * 86_400)
    [found] = cli("tokens", "list", "--json").json["items"]
    assert (found["agent"], found["project"]) == ("steve-w", "site")
    assert found["expires_at"] is not None


@pytest.mark.parametrize("by", ["name", "id", "token"])
def test_a_token_is_revoked_by_its_name_id_or_text(cli: Cli, by: str) -> None:
    made = cli("tokens", "create", "ci", "--scope", "read", "--json").json

    revoked = cli("tokens", "revoke", made[by], "--json")

    assert revoked.code == 0
    assert revoked.json == {"id": made["id"], "status": "revoked"}
    assert made["token"][17:] not in revoked.out + revoked.err
    assert cli("tokens", "list", "--json").json["items"] == []
    [found] = cli("tokens", "list", "--revoked", "--json").json["items"]
    assert found["status"] == "revoked"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["create", "x"], 2, "--scope"),
        (["create", "x", "--scope", "fly"], 2, "read, enqueue, work, operate, admin"),
        (["create", "a b", "--scope", "read"], 2, "name must"),
        (["create", "x", "--scope", "read", "--expires", "soon"], 2, "not an age"),
        (["create", "x", "--scope", "read", "--expires", "0"], 2, "more than 0"),
        (["revoke", "x"], 3, "there is no token 'x'"),
    ],
)
def test_an_invalid_option_is_reported(cli: Cli, words: list[str], code: int, said: str) -> None:
    done = cli("tokens", *words)

    assert done.code == code
    assert said in done.err
    assert done.out == ""


def test_a_token_that_does_not_exist_is_not_repeated(cli: Cli) -> None:
    text = f"trd_{'0' * 12}_{'s' * 49}"

    done = cli("tokens", "revoke", text)

    assert done.code == 3
    assert "sss" not in done.err
