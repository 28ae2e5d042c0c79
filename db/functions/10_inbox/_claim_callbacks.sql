/*
 * Stage 10 · inbox · _claim_callbacks
 *
 * Takes the oldest due callbacks of some shards. A callback's shard is its project's, which only the mapping
 * tells, so candidates are chosen and mapped without locks, and then locked where nobody else holds them.
 * Callbacks that map to no attempt belong to shard 0. Also says which other shards have work, among the
 * candidates that were looked at. The scan starts at the inbox's safe low-water mark.
 *
 * Called by   process_inbox
 * Writes      aivedio.queue_marks
 * Locks       the claimed inbox rows, with skip locked
 */
create or replace function aivedio._claim_callbacks(
  p_shards smallint[],
  p_limit  integer,
  out claims aivedio.claimed_callback[],
  out foreign_shards smallint[]
)
language plpgsql
volatile
set search_path = ''
as $_claim_callbacks$
declare
  v_now        constant timestamptz := aivedio._clock();
  v_high       bigint;
  v_snapshot   pg_snapshot;
  v_low        bigint;
  v_unfinished bigint;
begin
  -- The order of these matters: see _advance_mark.
  select case when ids.is_called then ids.last_value else ids.last_value - 1 end
  into v_high
  from aivedio.provider_callback_inbox_id_seq as ids;
  v_snapshot := pg_catalog.pg_current_snapshot();

  select mark.low
  into v_low
  from aivedio.queue_marks as mark
  where mark.queue = 'inbox'
    and mark.shard = 0;

  select waiting.id
  into v_unfinished
  from aivedio.provider_callback_inbox as waiting
  where waiting.process_status in ('pending', 'retry')
    and waiting.id > coalesce(v_low, 0)
  order by waiting.id
  limit 1;

  v_low := aivedio._advance_mark('inbox', 0::smallint, v_high, v_snapshot, v_unfinished);

  with candidate as materialized (
    select waiting.id, waiting.provider, waiting.callback_token_hash, waiting.client_request_id, waiting.provider_task_id
    from aivedio.provider_callback_inbox as waiting
    where waiting.process_status in ('pending', 'retry')
      and waiting.id > v_low
      and (waiting.next_retry_at is null or waiting.next_retry_at <= v_now)
    order by waiting.id
    limit p_limit * 4
  ),
  mapped as materialized (
    select
      candidate.id, mapping.attempt_id, mapping.agrees,
      coalesce(aivedio._shard(mapping.project_id), 0::smallint) as shard
    from candidate
    cross join lateral aivedio._map_callback(
      candidate.provider, candidate.callback_token_hash, candidate.client_request_id, candidate.provider_task_id
    ) as mapping
  ),
  own as materialized (
    select mapped.id
    from mapped
    where mapped.shard = any (p_shards)
    order by mapped.id
    limit p_limit
  ),
  locked as materialized (
    select waiting.id
    from aivedio.provider_callback_inbox as waiting
    where waiting.id in (select own.id from own)
      and waiting.process_status in ('pending', 'retry')
    order by waiting.id
    for no key update skip locked
  )
  select
    pg_catalog.array_agg(row(mapped.id, mapped.attempt_id, mapped.agrees)::aivedio.claimed_callback order by mapped.id)
      filter (where locked.id is not null),
    coalesce(pg_catalog.array_agg(distinct mapped.shard) filter (where mapped.shard <> all (p_shards)), '{}')
  into claims, foreign_shards
  from mapped
  left join locked on locked.id = mapped.id;

  claims := coalesce(claims, '{}');
end;
$_claim_callbacks$;

comment on function aivedio._claim_callbacks is
  'Stage 10: lock and map the oldest due callbacks of these shards; also names the other shards that have work.';
