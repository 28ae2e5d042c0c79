/*
 * Stage 90 · operate · requeue_outbox
 *
 * Lets the relay try a parked outbox row again.
 *
 * Called by   operators
 * Writes      aivedio.outbox_events, aivedio.queue_marks, aivedio.operator_actions
 * Locks       the outbox row
 */
create or replace function aivedio.requeue_outbox(
  p_id  bigint,
  p_who text,
  p_why text
)
returns boolean
language plpgsql
volatile
security definer  -- operators requeue without writing the outbox
set search_path = ''
as $requeue_outbox$
declare
  v_shard smallint;
begin
  update aivedio.outbox_events as parked
  set publish_status = 'pending',
      retry_count    = 0,
      next_retry_at  = null
  where parked.id = p_id
    and parked.publish_status = 'parked'
  returning parked.shard into v_shard;

  if not found then
    return false;
  end if;

  -- A scan starts at the mark, and this row may lie below it.
  update aivedio.queue_marks as mark
  set low  = least(mark.low, p_id - 1),
      high = null
  where mark.queue = 'outbox'
    and mark.shard = v_shard;

  perform aivedio._audit(p_who, 'requeue_outbox', p_id::text, p_why);
  perform aivedio._ring('aivedio_outbox', v_shard);
  return true;
end;
$requeue_outbox$;

comment on function aivedio.requeue_outbox is
  'Stage 90: send a parked outbox row again, audited; false when it is not parked.';

grant execute on function aivedio.requeue_outbox to aivedio_operator;
