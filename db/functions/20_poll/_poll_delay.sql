/*
 * Stage 20 · poll · _poll_delay
 *
 * How long to wait before the next poll of an attempt in this state: somewhere in the profile's range for it, doubled
 * with each failure in a row up to the cap, give or take a fifth. Null for a provider that cannot be polled.
 *
 * Called by   _accept_submit, _reschedule_poll
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._poll_delay(
  p_profile  jsonb,
  p_status   text,
  p_failures integer
)
returns interval
language plpgsql
volatile
set search_path = ''
as $_poll_delay$
declare
  v_ranges constant jsonb := '{"submitted": [2, 5], "queued": [10, 30], "running": [5, 15], "unknown": [60, 120]}'
    || coalesce(p_profile #> '{poll,interval_s}', '{}');
  v_range  constant jsonb := coalesce(v_ranges -> p_status, v_ranges -> 'queued');
  v_low    constant double precision := (v_range ->> 0)::double precision;
  v_high   constant double precision := (v_range ->> 1)::double precision;
  v_cap    constant double precision := coalesce((p_profile #>> '{poll,cap_s}')::double precision, 300);
begin
  if pg_catalog.jsonb_typeof(p_profile -> 'poll') is distinct from 'object' then
    return null;
  end if;

  return aivedio._backoff(v_low + (v_high - v_low) * pg_catalog.random(), v_cap, p_failures);
end;
$_poll_delay$;

comment on function aivedio._poll_delay is
  'Stage 20: the wait before the next poll, by the attempt''s state and its failures in a row.';
