/*
 * Stage 00 · base · release_bell
 *
 * Says "I am going to sleep", and answers with a transaction id. A writer that was refused the bell
 * before this call may still be uncommitted: keep looking until bell_quiet(that id) is true.
 *
 * Called by   a session that holds a single bell
 * Writes      nothing
 * Locks       releases the bell
 */
create or replace function aivedio.release_bell(
  p_channel text,
  p_shard   smallint default 0
)
returns text
language plpgsql
volatile
security definer  -- like every public function; it needs no privilege of the owner
set search_path = ''
as $release_bell$
begin
  perform pg_catalog.pg_advisory_unlock(pg_catalog.hashtext(p_channel), p_shard);
  -- Drawn after the release: whoever was refused the bell owns an older id, for bells ring last.
  return pg_catalog.pg_current_xact_id()::text;
end;
$release_bell$;

comment on function aivedio.release_bell is
  'Stage 00: let writers notify again. Answers the transaction id to pass to bell_quiet before sleeping.';

grant execute on function aivedio.release_bell to
  aivedio_inbox, aivedio_poll, aivedio_submit, aivedio_relay, aivedio_consumer, aivedio_gateway, aivedio_webhook;
