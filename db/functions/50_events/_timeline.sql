/*
 * Stage 50 · events · _timeline
 *
 * The timeline that this server writes now: the first eight hexadecimal digits of the name
 * of its current log file.
 *
 * Called by   _check_lineage, _after_restore
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._timeline()
returns integer
language plpgsql
volatile
set search_path = ''
as $_timeline$
begin
  return (
    'x' || pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8)
  )::bit(32)::integer;
end;
$_timeline$;

comment on function aivedio._timeline is
  'Stage 50: the timeline of the write-ahead log that this server writes.';
