/*
 * Stage 00 · base · _clock
 *
 * The only source of time. A session setting aivedio.now replaces the wall clock, so
 * that days of schedule can be tested in seconds.
 *
 * Called by   every function that needs the time
 * Writes      nothing
 * Locks       nothing
 * Raises      22007  aivedio.now is not a timestamp
 */
create or replace function aivedio._clock()
returns timestamptz
language plpgsql
volatile
set search_path = ''
as $_clock$
begin
  return coalesce(
    nullif(pg_catalog.current_setting('aivedio.now', true), '')::timestamptz,
    pg_catalog.clock_timestamp()
  );
end;
$_clock$;

comment on function aivedio._clock is
  'Stage 00: the time, from the wall clock or from the session setting aivedio.now.';
