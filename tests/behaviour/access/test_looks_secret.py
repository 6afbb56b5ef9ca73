"""Credentials are detected before they are stored; text that only resembles one is accepted."""

from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver
from tests.drivers.harness import ME, fetched, put, shown
from tests.drivers.refusals import refused, unchanged

# Joined here, so that nobody's scanner takes this file for a leak.
GITHUB = "ghp_" + "a1B2" * 9
KEY = "-----BEGIN " + "RSA PRIVATE KEY-----\nMIIE..."

SECRETS: dict[str, Any] = {
    "token": {"token": "abc"},
    "github.token": {"github": {"token": "abc"}},
    "env.GITHUB_TOKEN": {"env": {"GITHUB_TOKEN": "abc"}},
    "api-key": {"api-key": "abc"},
    "x.0.apiKey": {"x": [{"apiKey": "abc"}]},
    "db_password": {"db_password": "abc"},
    "Pass_Word": {"Pass_Word": "abc"},
    "client_secret": {"client_secret": "abc"},
    "headers.Authorization": {"headers": {"Authorization": "Bearer abc"}},
    "headers.Set-Cookie": {"headers": {"Set-Cookie": "sid=1"}},
    "password.0": {"password": ["abc"]},
    "aws_secret_access_key": {"aws_secret_access_key": "abc"},
    "note": {"note": f"use {GITHUB} please"},
    "a.b.0": {"a": {"b": [f"x {GITHUB}"]}},
    "key": {"key": "sk-" + "proj-" + "a1B2" * 8},
    "id": {"id": "AKIA" + "ABCDEFGH12345678"},
    "pem": {"pem": KEY},
    "jwt": {"jwt": "eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiIxMjMifQ.dBjftJeZ4CVP"},
    "repo": {"repo": "https://ann:hunter2@example.org/x.git"},
    "curl": {"curl": "-H 'Authorization: Bearer " + "a1B2" * 8 + "'"},
    "slack": {"slack": "xox" + "b-123456789012-abcdef"},
    # A long key is not repeated.
    "headers.ghp_...": {"headers": {GITHUB: 1}},
    "a.corr....token": {"a": {"correct horse battery staple 123": {"token": "abc"}}},
    "query": {"query": "https://example.org/x?page=2&access_token=" + "a1B2" * 5},
    "vars.1": {"vars": ["PATH=/usr/bin", "GITHUB_TOKEN=" + "a1B2" * 5]},
    "shell": {"shell": "export DB_PASSWORD='hunter2222' && run"},
    "ours": {"ours": "trd_" + "0123456789ab_" + "x-Yz" * 12},
}
PLAIN: list[Any] = [
    {},
    {"max_tokens": 4000, "tokens": 12, "token_count": "12"},
    {"token": None, "password": "", "secret": 7, "api_key": {"$secret": "github"}},
    {"token": "${GITHUB_TOKEN}", "password": "$DB_PASSWORD", "secret": "***"},
    {"api_key": "{{ vault.key }}", "authorization": "<from the vault>"},
    {"next_page_token": "abc", "tokenizer": "cl100k", "secretary": "Ann", "cookies": "many"},
    {"text": "the password is wrong, and the token expired; a secret? api_key missing"},
    {"text": "task-1234567890123456789012345 and disk-1234567890123456789012345"},
    {"url": "https://example.org/a@b", "mail": "ann@example.org", "ssh": "git@github.com:a/b"},
    {"url": "https://example.org/?token=", "next": "https://example.org/?page_token=abcdefghij"},
    {"env": ["GITHUB_TOKEN=$GITHUB_TOKEN", "PASSWORD=${DB}", "API_KEY=<yours>", "TOKENS=12345678"]},
    {"text": "sk-short, ghp_short, AKIA, bearer of news, basic things"},
    ["password", {"x": "token"}],
]


@pytest.mark.requirement("H10")
@pytest.mark.parametrize("path", SECRETS)
def test_a_credential_is_found_with_its_place(driver: Driver, path: str) -> None:
    query = "select treadle.find_secret(%s)"
    assert driver.value(query, Jsonb(SECRETS[path])) == path


@pytest.mark.parametrize("document", PLAIN, ids=str)
def test_text_that_only_resembles_a_credential_is_accepted(driver: Driver, document: Any) -> None:
    assert driver.value("select treadle.find_secret(%s)", Jsonb(document)) is None


@pytest.mark.requirement("H10")
def test_neither_a_payload_nor_a_decision_with_one_is_stored(driver: Driver) -> None:
    put(driver)
    task = fetched(driver)

    with unchanged(driver), refused("TR111", "credential at note"):
        put(driver, SECRETS["note"])
    with unchanged(driver), refused("TR111", "credential at github.token"):
        call = "select treadle.complete_harness_task(%s, %s, %s)"
        driver.rows(call, task["id"], task["token"], Jsonb(SECRETS["github.token"]))


@pytest.mark.requirement("H10")
def test_a_refused_credential_is_not_repeated(driver: Driver) -> None:
    short = "AKIA" + "ABCDEFGH12345678"
    for payload in ({short: 1}, {"a": {short: {"token": "abc"}}}, {GITHUB: GITHUB}):
        with pytest.raises(psycopg.Error, match="credential at") as raised:
            put(driver, payload)
        text = str(raised.value)
        assert short not in text
        assert GITHUB not in text


def test_credentials_are_stored_if_the_caller_allows_it(driver: Driver) -> None:
    task_id = put(driver, {"token": "abc"}, ME, allow_secrets=True)
    assert shown(driver, task_id)["payload"] == {"token": "abc"}


def test_a_large_document_is_looked_through_in_no_time(driver: Driver) -> None:
    many = {f"field {number}": ["some text about a token", number] for number in range(5000)}
    driver.rows("set statement_timeout = '2s'")

    assert driver.value("select treadle.find_secret(%s)", Jsonb(many)) is None
    many["last"] = [GITHUB]
    assert driver.value("select treadle.find_secret(%s)", Jsonb(many)) == "last.0"
