"""Each guard of stored answers, broken on purpose, is noticed by a test."""

import psycopg
import pytest

from tests.behaviour import test_claims_of as claims
from tests.behaviour import test_replies as replies
from tests.behaviour.driver import Driver
from tests.behaviour.mutant import Mutant

MUTANTS = {
    "a key that nobody holds": Mutant(
        "replies/begin_reply",
        {"if not pg_try_advisory_xact_lock(": "if false and not pg_try_advisory_xact_lock("},
        replies.test_a_request_under_way_is_not_done_twice,
    ),
    "a lock for all callers": Mutant(
        "replies/begin_reply",
        {"format('treadle.replies %L %L', p_principal, p_key)": "format('replies %L', p_key)"},
        replies.test_a_request_under_way_is_not_done_twice,
        psycopg.Error,
    ),
    "a lock for all keys": Mutant(
        "replies/begin_reply",
        {"format('treadle.replies %L %L', p_principal, p_key)": "format('r %L', p_principal)"},
        replies.test_a_request_under_way_is_not_done_twice,
        psycopg.Error,
    ),
    "any body will do": Mutant(
        "replies/begin_reply",
        {"(v_reply.route, v_reply.hash) is distinct from (p_route, p_hash)": "false"},
        replies.test_a_key_is_for_one_request,
    ),
    "any route will do": Mutant(
        "replies/begin_reply",
        {
            "(v_reply.route, v_reply.hash) is distinct from (p_route, p_hash)": (
                "v_reply.hash <> p_hash"
            )
        },
        replies.test_a_key_is_for_one_request,
    ),
    "answers of somebody else": Mutant(
        "replies/begin_reply",
        {"replies.principal = p_principal\n    and ": ""},
        replies.test_a_key_is_the_callers_own,
        psycopg.Error,
    ),
    "answers for ever": Mutant(
        "replies/begin_reply",
        {"and replies.created_at > treadle.clock() - treadle.reply_age()": ""},
        replies.test_an_answer_is_kept_for_a_day,
    ),
    "answers for an hour": Mutant(
        "replies/reply_age",
        {"24 hours": "1 hour"},
        replies.test_an_answer_is_kept_for_a_day,
    ),
    "the first answer stays": Mutant(
        "replies/keep_reply",
        {"body = excluded.body": "body = replies.body"},
        replies.test_an_answer_is_kept_for_a_day,
    ),
    "answers that pile up": Mutant(
        "replies/keep_reply",
        {"perform treadle.prune_replies(2);": ""},
        replies.test_old_answers_go_as_fast_as_new_ones_come,
    ),
    "answers that go too early": Mutant(
        "replies/prune_replies",
        {"where old.created_at <= treadle.clock() - treadle.reply_age()": ""},
        replies.test_old_answers_go_when_the_pruner_comes,
    ),
    "all old answers at once": Mutant(
        "replies/prune_replies",
        {"limit p_limit": ""},
        replies.test_old_answers_go_when_the_pruner_comes,
    ),
    "a claim that is everybody's": Mutant(
        "claims/claims_of",
        {"when tasks.claim_token = claim.token then": "when true then"},
        claims.test_a_claim_that_was_taken_over_is_still_the_first_agents,
    ),
    "an end that is nobody's": Mutant(
        "claims/claims_of",
        {"tasks.last_token = claim.token and tasks.status = 'completed'": "false"},
        claims.test_a_completed_claim_is_its_agents,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_guard_is_noticed(fresh: Driver, name: str) -> None:
    mutant = MUTANTS[name]
    fresh.conn.execute(mutant.text().encode())

    with pytest.raises(mutant.noticed):
        mutant.killer(fresh)
