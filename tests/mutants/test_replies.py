"""Each guard of stored answers, broken on purpose, is noticed by a test."""

import psycopg
import pytest

from tests.drivers.engine import Driver
from tests.drivers.mutants import Killers, Mutant

replies = Killers("replies.test_replies")
claims = Killers("claims.test_claims_of")

pytestmark = pytest.mark.mutant

GIVES_UP = "exception\n  when lock_not_available then\n    return false;\n"

MUTANTS = {
    "a key without a lock": Mutant(
        "begin_reply",
        {"if not treadle.lock_reply(": "if false and not treadle.lock_reply("},
        replies.test_a_request_under_way_is_not_done_twice,
    ),
    "a key that is waited for": Mutant(
        "lock_reply",
        {"set lock_timeout = '100ms'\n": "", GIVES_UP: ""},
        replies.test_a_request_under_way_is_not_done_twice,
    ),
    "a key that is begun again by two": Mutant(
        "lock_reply",
        {"for update skip locked;": ";"},
        replies.test_a_request_begun_again_is_not_done_twice,
    ),
    "a row for all callers": Mutant(
        "lock_reply",
        {"replies.principal = p_principal and ": ""},
        replies.test_a_request_begun_again_is_not_done_twice,
        psycopg.Error,
    ),
    "a row without an answer is an answer": Mutant(
        "stored_reply",
        {"    and replies.status is not null\n": ""},
        replies.test_a_key_that_was_begun_and_never_answered_is_free,
        psycopg.Error,
    ),
    "an answer that came in between": Mutant(
        "begin_reply",
        {
            "    -- Read again under the lock: the response may have been stored in between.\n"
            "    select stored.* into v_reply from treadle.stored_reply(p_principal, p_key)"
            " as stored;\n": ""
        },
        replies.test_an_answer_that_is_stored_while_its_repeat_looks_for_it_is_found,
    ),
    "any body will do": Mutant(
        "begin_reply",
        {"(v_reply.route, v_reply.hash) is distinct from (p_route, p_hash)": "false"},
        replies.test_a_key_is_for_one_request,
    ),
    "any route will do": Mutant(
        "begin_reply",
        {
            "(v_reply.route, v_reply.hash) is distinct from (p_route, p_hash)": (
                "v_reply.hash <> p_hash"
            )
        },
        replies.test_a_key_is_for_one_request,
    ),
    "answers of somebody else": Mutant(
        "stored_reply",
        {"replies.principal = p_principal\n    and ": ""},
        replies.test_a_key_is_the_callers_own,
        psycopg.Error,
    ),
    "answers for ever": Mutant(
        "stored_reply",
        {"    and replies.created_at > treadle.clock() - treadle.reply_age()\n": ""},
        replies.test_an_answer_is_kept_for_a_day,
    ),
    "answers for an hour": Mutant(
        "reply_age",
        {"24 hours": "1 hour"},
        replies.test_an_answer_is_kept_for_a_day,
    ),
    "the first answer stays": Mutant(
        "save_reply",
        {"body = excluded.body": "body = replies.body"},
        replies.test_an_answer_is_kept_for_a_day,
    ),
    "answers that pile up": Mutant(
        "save_reply",
        {"perform treadle.prune_replies(2);": ""},
        replies.test_old_answers_go_as_fast_as_new_ones_come,
    ),
    "answers that go too early": Mutant(
        "prune_replies",
        {"where old.created_at <= treadle.clock() - treadle.reply_age()": ""},
        replies.test_old_answers_go_when_the_pruner_comes,
    ),
    "all old answers at once": Mutant(
        "prune_replies",
        {"limit p_limit": ""},
        replies.test_old_answers_go_when_the_pruner_comes,
    ),
    "a claim that is everybody's": Mutant(
        "claim_owners",
        {"when tasks.claim_token = claim.token then": "when true then"},
        claims.test_a_claim_that_was_taken_over_is_still_the_first_agents,
    ),
    "an end by another request": Mutant(
        "claim_owners",
        {"tasks.last_token = claim.token and tasks.status = 'completed'": "false"},
        claims.test_a_completed_claim_is_its_agents,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_guard_is_noticed(fresh: Driver, name: str) -> None:
    MUTANTS[name].check(fresh)
