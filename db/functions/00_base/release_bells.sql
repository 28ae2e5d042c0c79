/*
 * Stage 00 · base · release_bells
 *
 * release_bell for several bells of a channel in one round trip. The transaction id is drawn after the
 * last release, so that it covers the writers that were refused any of them.
 *
 * Called by   edge/doorbell.py, on the connection that called hold_bells
 * Writes      nothing
 * Locks       releases the bells
 */
create or replace function aivedio.release_bells(
  p_channel text,
  p_shards  smallint[]
)
returns text
language plpgsql
volatile
security definer  -- like every public function; it needs no privilege of the owner
set search_path = ''
as $release_bells$
declare
  v_shard smallint;
begin
  foreach v_shard in array p_shards
  loop
    -- Not release_bell: it would draw the id after the first of them.
    perform pg_catalog.pg_advisory_unlock(pg_catalog.hashtext(p_channel), v_shard);
  end loop;
  return pg_catalog.pg_current_xact_id()::text;
end;
$release_bells$;

comment on function aivedio.release_bells is
  'Stage 00: let writers of several shards notify again. Answers the transaction id to pass to bell_quiet before sleeping.';

grant execute on function aivedio.release_bells to
  aivedio_inbox, aivedio_poll, aivedio_submit, aivedio_relay, aivedio_consumer, aivedio_gateway, aivedio_webhook;
