-- check_work_text: refuse a text of a work item that is empty or too long.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.check_work_text(
  p_name      text,
  p_text      text,
  p_max       integer,
  p_required  boolean
)
returns void
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if (p_required and p_text is null) or octet_length(p_text) > p_max or p_text !~ '\S' then
    perform treadle.refuse(
      format(
        '%s must have 1 to %s bytes, not %s', p_name, p_max, coalesce(octet_length(p_text), 0)
      ),
      jsonb_build_object('argument', p_name),
      case
        when not p_required and p_text !~ '\S' then
          format('Leave %s out where there is none.', p_name)
      end
    );
  end if;
end;
$$;

comment on function treadle.check_work_text(text, text, integer, boolean) is
'Internal: a description, the name of an agent and the like have something in them.';

revoke all on function treadle.check_work_text(text, text, integer, boolean) from public;
