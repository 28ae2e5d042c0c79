/*
 * Stage 00 · base · _shard
 *
 * Maps a task (outbox) or a project (inbox) to one of eight shards. Workers own shards, so
 * that no two of them touch the same rows.
 *
 * Called by   _ring_outbox, _claim_callbacks, apply_observation, _emit, why_waiting
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._shard(p_id uuid)
returns smallint
language plpgsql
immutable
strict
parallel safe
set search_path = ''
as $_shard$
begin
  return (pg_catalog.uuid_hash(p_id) & 7)::smallint;
end;
$_shard$;

comment on function aivedio._shard is
  'Stage 00: the shard, 0 to 7, that a task (outbox) or a project (inbox) belongs to.';
