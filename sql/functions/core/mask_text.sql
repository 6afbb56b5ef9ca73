-- mask_text: a text for an error or a log, without what looks like a credential.
--
-- PostgreSQL's own messages end in the value that was wrong; of that the first characters are left.
-- src/treadle/masking.py does the same for errors that Python makes.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.mask_text(p_text text)
returns text
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select regexp_replace(
    regexp_replace(p_text, '^([^"]*: ")([^"]{4})[^"].*"$', '\1\2..."'),
    '\m(gh[opsur]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|sk-[\w-]{16,}'
    || '|A[KS]IA[0-9A-Z]{12,}|xox[abeprs]-[\w-]{10,}|AIza[\w-]{16,}|trd_[0-9a-f]{12}_[\w-]*'
    || '|eyJ[\w-]{8,}(\.[\w-]*)*)'
    || '|-----BEGIN [A-Z ]*PRIVATE KEY.*|://[^\s/:@]+:[^\s/@]+@'
    || '|\m([Bb]earer|[Bb]asic) [A-Za-z0-9+/=._~-]{16,}'
    || '|[?&](access_token|api_?key|token|password|(client_)?secret)=[\w.~-]{8,}'
    || '|\m[A-Z0-9_]*(PASSWORD|TOKEN|SECRET|API_?KEY|ACCESS_KEY)=["'']?[\w+/.~-]{8,}',
    '***', 'g'
  )
$$;

comment on function treadle.mask_text(text) is
'Internal: replaces what looks like a credential in the text of an error.';

revoke all on function treadle.mask_text(text) from public;
