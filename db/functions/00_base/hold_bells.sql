/*
 * Stage 00 · base · hold_bells
 *
 * hold_bell for several bells of a channel in one round trip: a reader of eight shards wakes that much
 * sooner. Answers with the bells that are held now.
 *
 * Called by   edge/doorbell.py, on a direct connection
 * Writes      nothing
 * Locks       the bells, exclusive, for the session, until release_bells
 */
create or replace function aivedio.hold_bells(
  p_channel text,
  p_shards  smallint[]
)
returns smallint[]
language plpgsql
volatile
security definer  -- like every public function; it needs no privilege of the owner
set search_path = ''
as $hold_bells$
declare
  v_shard smallint;
  v_held  smallint[] := array[]::smallint[];
begin
  foreach v_shard in array p_shards
  loop
    if aivedio.hold_bell(p_channel, v_shard) then
      v_held := v_held || v_shard;
    end if;
  end loop;
  return v_held;
end;
$hold_bells$;

comment on function aivedio.hold_bells is
  'Stage 00: tell writers of several shards that their reader is awake; answers with the bells that could be had.';

grant execute on function aivedio.hold_bells to
  aivedio_inbox, aivedio_poll, aivedio_submit, aivedio_relay, aivedio_consumer, aivedio_gateway, aivedio_webhook;
