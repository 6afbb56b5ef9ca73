-- expiry_of: when a wait expires: after expires_s seconds, or at expires_at; null for never.
--
-- A time that has passed is taken: who repeats a call may be late.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.expiry_of(p_given jsonb, p_now timestamptz)
returns timestamptz
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_at timestamptz;
begin
  if p_given ? 'expires_s' and p_given ? 'expires_at' then
    raise data_exception using message = 'give expires_s or expires_at, not both';
  elsif p_given ? 'expires_s' then
    if p_given -> 'expires_s' <= '0' or p_given -> 'expires_s' > '315360000' then
      raise data_exception using message = 'expires_s must be above 0, up to ten years';
    end if;
    v_at := p_now + make_interval(secs => (p_given -> 'expires_s')::float8);
  else
    v_at := (p_given ->> 'expires_at')::timestamptz;
    if not treadle.is_moment(v_at) or v_at > p_now + interval '10 years' then
      raise data_exception using message = 'expires_at must be a moment within ten years';
    end if;
  end if;
  return v_at;
exception
  when data_exception then
    perform treadle.refuse(
      sqlerrm,
      jsonb_build_object(
        'argument', case when p_given ? 'expires_s' then 'expires_s' else 'expires_at' end
      ),
      'For example {"expires_s": 3600} or {"expires_at": "2030-01-31T12:00:00Z"}.'
    );
end;
$$;

comment on function treadle.expiry_of(jsonb, timestamptz) is
'Internal: the moment at which a wait expires.';

revoke all on function treadle.expiry_of(jsonb, timestamptz) from public;
