/*
 * Stage 00 · base · bell_quiet
 *
 * True once every transaction that could have been refused the bell before release_bell is over,
 * so that a last look sees its rows and the reader may wait for a notification.
 *
 * Called by   edge/doorbell.py
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio.bell_quiet(p_xid text)
returns boolean
language plpgsql
volatile
security definer  -- like every public function; it needs no privilege of the owner
set search_path = ''
as $bell_quiet$
begin
  return pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot()) > p_xid::xid8;
end;
$bell_quiet$;

comment on function aivedio.bell_quiet is
  'Stage 00: whether a reader that released its bell at this transaction id may sleep after one more look.';

grant execute on function aivedio.bell_quiet to
  aivedio_inbox, aivedio_poll, aivedio_submit, aivedio_relay, aivedio_consumer, aivedio_gateway, aivedio_webhook;
