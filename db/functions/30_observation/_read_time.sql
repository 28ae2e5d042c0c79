/*
 * Stage 30 · observation · _read_time
 *
 * Reads a provider's time: ISO 8601 (UTC where it names no zone), or Unix seconds, milliseconds or
 * microseconds as number or string. A time that is unreadable, or further than a year behind or two days
 * ahead of ours, is no time: it would only spoil the statistics, for no decision rests on it.
 *
 * Called by   _normalise
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._read_time(
  p_value jsonb,
  p_now   timestamptz
)
returns timestamptz
language plpgsql
stable
set search_path = ''
set timezone = 'UTC'
as $_read_time$
declare
  v_text   constant text := pg_catalog.left(p_value #>> '{}', 64);
  v_number numeric;
  v_time   timestamptz;
begin
  if v_text ~ '^\d{1,16}(\.\d{1,9})?$' then
    v_number := v_text::numeric;
    v_number := case
      when v_number >= 1e14 then v_number / 1000000
      when v_number >= 1e11 then v_number / 1000
      else v_number
    end;
    v_time := pg_catalog.to_timestamp(v_number::double precision);
  elsif v_text ~ '^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,12})?)?( ?(Z|[+-]\d\d(:?\d\d)?))?$' then
    v_time := v_text::timestamptz;
  end if;

  if v_time between p_now - interval '366 days' and p_now + interval '2 days' then
    return v_time;
  end if;
  return null;
exception
  when datetime_field_overflow or invalid_datetime_format or invalid_time_zone_displacement_value then
    return null;
end;
$_read_time$;

comment on function aivedio._read_time is
  'Stage 30: a provider''s time in any of the usual forms; null when it is unreadable or absurd.';
