-- edit_distance: return how many letters differ between two names, to suggest the right one.
--
-- Two swapped letters count as one difference.

create or replace function treadle.edit_distance(p_a text, p_b text)
returns integer
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
  v_a      text[] := string_to_array(p_a, null);
  v_b      text[] := string_to_array(p_b, null);
  v_before integer[];
  v_last   integer[];
  v_row    integer[] := array(select generate_series(0, cardinality(v_b)));
begin
  -- Element j + 1 of a row is the distance between the first i letters of a and the first j of b.
  for i in 1..cardinality(v_a) loop
    v_before := v_last;
    v_last := v_row;
    v_row := array[i];
    for j in 1..cardinality(v_b) loop
      v_row[j + 1] := least(
        v_last[j + 1] + 1, v_row[j] + 1, v_last[j] + (v_a[i] <> v_b[j])::integer
      );
      if i > 1 and j > 1 and v_a[i] = v_b[j - 1] and v_a[i - 1] = v_b[j] then
        v_row[j + 1] := least(v_row[j + 1], v_before[j - 1] + 1);
      end if;
    end loop;
  end loop;
  return v_row[cardinality(v_b) + 1];
end;
$$;
