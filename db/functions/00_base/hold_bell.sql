/*
 * Stage 00 · base · hold_bell
 *
 * Says "I am awake": while the calling session holds the bell, writers do not notify. It waits a
 * moment for writers that are just ringing; trying without waiting would starve among many of them.
 *
 * Called by   hold_bells
 * Writes      nothing
 * Locks       the bell, exclusive, for the session, until release_bell
 */
create or replace function aivedio.hold_bell(
  p_channel text,
  p_shard   smallint default 0
)
returns boolean
language plpgsql
volatile
security definer  -- like every public function; it needs no privilege of the owner
set search_path = ''
set lock_timeout = '50ms'
as $hold_bell$
begin
  perform pg_catalog.pg_advisory_lock(pg_catalog.hashtext(p_channel), p_shard);
  return true;
exception
  when lock_not_available then
    return false;
end;
$hold_bell$;

comment on function aivedio.hold_bell is
  'Stage 00: tell writers that the reader is awake. False: another session is, or writers were ringing for 50 ms; drain anyway and try again.';

grant execute on function aivedio.hold_bell to
  aivedio_inbox, aivedio_poll, aivedio_submit, aivedio_relay, aivedio_consumer, aivedio_gateway, aivedio_webhook;
