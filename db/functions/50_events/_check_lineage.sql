/*
 * Stage 50 · events · _check_lineage
 *
 * Notices that this is not the server, or not the timeline, that wrote the last event: the database was
 * restored from a backup. Event ids drawn after the backup would then be drawn a second time, and a
 * browser that holds one of them would miss events without knowing. So the first writer moves the ids.
 * A snapshot of disks keeps identifier and timeline: there, operators call after_restore().
 *
 * It is looked at once in a transaction, however many events it writes.
 *
 * Called by   _emit
 * Writes      what _after_restore writes, once per restore
 * Locks       nothing while the lineage is unchanged
 */
create or replace function aivedio._check_lineage()
returns void
language plpgsql
volatile
set search_path = ''
as $_check_lineage$
declare
  v_xact constant text := pg_catalog.pg_current_xact_id()::text;
begin
  -- Once in a transaction is enough: one that has begun to write ends with the server that it began on.
  if pg_catalog.current_setting('aivedio.lineage_checked', true) = v_xact then
    return;
  end if;

  -- The timeline comes from the insertion point of the log, which a promotion changes at once;
  -- pg_control learns of it only at the next checkpoint.
  perform 1
  from aivedio.server_identity as identity
  where identity.system_identifier = (select system.system_identifier from pg_catalog.pg_control_system() as system)
    and identity.timeline = aivedio._timeline();

  if not found then
    perform aivedio._after_restore('lineage');
  end if;
  perform pg_catalog.set_config('aivedio.lineage_checked', v_xact, true);
end;
$_check_lineage$;

comment on function aivedio._check_lineage is
  'Stage 50: call _after_restore when this server or timeline is not the one that wrote before.';
