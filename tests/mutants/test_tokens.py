"""Each guard of tokens, broken on purpose, is noticed by a test."""

import psycopg
import pytest

from tests.drivers.engine import Driver
from tests.drivers.mutants import FAILED, Killers, Mutant

secrets = Killers("access.test_looks_secret")
refusals = Killers("tokens.test_token_refusals")
tokens = Killers("tokens.test_tokens")

pytestmark = pytest.mark.mutant

MUTANTS = {
    "a secret that is stored": Mutant(
        "create_token",
        {"sha256(convert_to(v_secret, 'UTF8'))": "convert_to(left(v_secret, 32), 'UTF8')"},
        tokens.test_a_token_is_shown_once_and_only_its_hash_is_stored,
    ),
    "a secret in an event": Mutant(
        "create_token",
        {"('created', v_id, p_actor)": "('created', v_id, v_secret)"},
        tokens.test_a_token_is_shown_once_and_only_its_hash_is_stored,
    ),
    "half of the random bits": Mutant(
        "new_token",
        {"substr(treadle.new_secret(), 7)": "repeat(substr(treadle.new_secret(), 7, 22), 2)"},
        tokens.test_a_token_is_shown_once_and_only_its_hash_is_stored,
    ),
    "a secret that is the same for all": Mutant(
        "new_token",
        {"treadle.new_secret()": "('whsec_' || encode(sha256('x'::bytea), 'base64'))"},
        tokens.test_no_two_tokens_are_alike,
    ),
    "an end that is not looked at": Mutant(
        "status_of_token",
        {"p_expires_at <= treadle.clock()": "false"},
        tokens.test_a_token_expires_by_itself,
    ),
    "revoked and still live": Mutant(
        "status_of_token",
        {"p_revoked_at is not null": "false"},
        lambda driver: tokens.test_a_token_is_revoked_for_good(driver, "id"),
    ),
    "an expired token that opens the door": Mutant(
        "has_tokens",
        {
            "where api_tokens.revoked_at is null": (
                "where api_tokens.revoked_at is null and api_tokens.expires_at > treadle.clock()"
            )
        },
        tokens.test_a_token_expires_by_itself,
    ),
    "a revoked token that counts": Mutant(
        "has_tokens",
        {"where api_tokens.revoked_at is null": ""},
        lambda driver: tokens.test_a_token_is_revoked_for_good(driver, "name"),
    ),
    "the one that ends first speaks for all": Mutant(
        "has_tokens",
        {"desc nulls first": "asc nulls last"},
        tokens.test_one_valid_token_among_many_is_enough,
    ),
    "a last use for every request": Mutant(
        "record_token_use",
        {"and coalesce(due.last_used_at <= treadle.clock() - interval '1 minute', true)": ""},
        tokens.test_the_last_use_is_kept_to_the_minute,
    ),
    "a use that waits": Mutant(
        "record_token_use",
        {"for no key update skip locked": "for no key update"},
        tokens.test_recording_a_use_does_not_wait_for_locks,
        psycopg.errors.LockNotAvailable,
    ),
    "any scope": Mutant(
        "check_token",
        {"or not coalesce(": "or false and not coalesce("},
        lambda driver: refusals.test_a_token_that_could_not_work_is_refused(
            driver, {"scopes": ["read", "fly"]}, "scopes must"
        ),
    ),
    "a name of the host's own callers": Mutant(
        "check_token",
        {"when (p_token).name = 'local' then": "when false then"},
        lambda driver: refusals.test_a_name_that_is_none_is_refused(driver, "local"),
    ),
    "a revocation without a word": Mutant(
        "revoke_token",
        {"perform treadle.emit_token_event('revoked', v_row.id, p_actor);": ""},
        tokens.test_creating_and_revoking_a_token_are_events_with_their_actors,
        (*FAILED, ValueError),
    ),
    "a secret that is repeated": Mutant(
        "raise_error",
        {"message = treadle.mask_text(p_message)": "message = p_message"},
        secrets.test_a_refused_credential_is_not_repeated,
    ),
    "a name before an id": Mutant(
        "revoke_token",
        {"order by api_tokens.id = v_key desc": "order by api_tokens.id = v_key asc"},
        refusals.test_an_id_comes_before_a_name_that_looks_like_one,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_guard_is_noticed(fresh: Driver, name: str) -> None:
    MUTANTS[name].check(fresh)
