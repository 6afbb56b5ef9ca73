-- 0022_harness_claims: a claim of the harness says whether it was made before.

drop function if exists treadle.claim_harness(text, uuid, double precision);
