-- 0030_matching_letters: letters are looked for in steps, as far as they are wanted.

-- Replaced by a function that also takes how many are wanted.
drop function if exists treadle.matching_letters(jsonb, uuid);
