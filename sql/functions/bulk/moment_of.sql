-- moment_of: a moment as people write it: a time, or how long ago it was, such as 90s, 15m, 2h, 7d.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      data exceptions, for the caller to refuse.

create or replace function treadle.moment_of(p_text text, p_now timestamptz)
returns timestamptz
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_parts text[] := regexp_match(p_text, '^([0-9]{1,9})([smhdw])$');
  v_at    timestamptz;
begin
  v_at := case
    when v_parts is null then p_text::timestamptz
    else p_now - make_interval(
      secs => v_parts[1]::bigint * case v_parts[2]
        when 's' then 1 when 'm' then 60 when 'h' then 3600 when 'd' then 86400 else 604800
      end
    )
  end;
  if not isfinite(v_at) then
    raise data_exception using message = format('%L is no moment', treadle.excerpt_name(p_text));
  end if;
  return v_at;
end;
$$;

comment on function treadle.moment_of(text, timestamptz) is
'Internal: reads a time, or an age such as 2h.';

revoke all on function treadle.moment_of(text, timestamptz) from public;
