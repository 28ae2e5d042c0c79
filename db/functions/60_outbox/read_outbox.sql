/*
 * Stage 60 · outbox · read_outbox
 *
 * The oldest rows that a shard owes the bus, in the order in which they were written. A task with a row
 * that waits for its next try is left out from that row on, so that its order holds; other tasks flow
 * around it. A task that has a parked row is flagged with "after_parked": true in the body.
 *
 * Rows are not claimed: the owner of the shard is the only reader, and remembers what it has in flight.
 *
 * Called by   relay/outbox.py, as the shard's owner
 * Writes      aivedio.queue_marks
 * Locks       nothing
 * Raises      VC601  the session does not own the shard
 */
create or replace function aivedio.read_outbox(
  p_shard smallint,
  p_limit integer default 500,
  p_after bigint  default 0
)
returns setof aivedio.outbox_message
language plpgsql
volatile
security definer  -- the relay reads messages without reading the table
set search_path = ''
set plan_cache_mode = force_generic_plan  -- planning costs three times what the reading does
as $read_outbox$
declare
  v_now        constant timestamptz := aivedio._clock();
  v_high       bigint;
  v_snapshot   pg_snapshot;
  v_low        bigint;
  v_unfinished bigint;
begin
  perform aivedio._require_shard(p_shard);

  -- A sequence that has drawn nothing yet shows the value that it will draw first.
  select case when ids.is_called then ids.last_value else ids.last_value - 1 end
  into v_high
  from aivedio.outbox_ids as ids;
  v_snapshot := pg_catalog.pg_current_snapshot();

  select mark.low
  into v_low
  from aivedio.queue_marks as mark
  where mark.queue = 'outbox'
    and mark.shard = p_shard;

  select pending.id
  into v_unfinished
  from aivedio.outbox_events as pending
  where pending.shard = p_shard
    and pending.publish_status = 'pending'
    and pending.id > coalesce(v_low, 0)
  order by pending.id
  limit 1;

  v_low := aivedio._advance_mark('outbox', p_shard, v_high, v_snapshot, v_unfinished);

  if v_unfinished is null then
    return;
  end if;

  return query
  with delayed as materialized (
    select waiting.aggregate_id, min(waiting.id) as id
    from aivedio.outbox_events as waiting
    where waiting.shard = p_shard
      and waiting.publish_status = 'pending'
      and waiting.next_retry_at is not null
      and waiting.next_retry_at > v_now
    group by waiting.aggregate_id
  )
  select
    pending.id,
    pending.aggregate_id,
    pending.payload ->> 'status',
    case
      when exists (
        select 1
        from aivedio.outbox_events as parked
        where parked.aggregate_id = pending.aggregate_id
          and parked.publish_status = 'parked'
          and parked.id < pending.id
      )
      then pending.payload || '{"after_parked": true}'
      else pending.payload
    end,
    pending.retry_count
  from aivedio.outbox_events as pending
  left join delayed on delayed.aggregate_id = pending.aggregate_id
  where pending.shard = p_shard
    and pending.publish_status = 'pending'
    and pending.id > greatest(v_low, p_after)
    and (delayed.id is null or pending.id < delayed.id)
  order by pending.id
  limit p_limit;
end;
$read_outbox$;

comment on function aivedio.read_outbox is
  'Stage 60: what a shard owes the bus, oldest first, from the safe low-water mark or after p_after; tasks with a delayed row are held back from it on.';

grant execute on function aivedio.read_outbox to aivedio_relay;
