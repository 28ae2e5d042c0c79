/*
 * Stage 90 · operate · republish
 *
 * Sends messages to the bus again that were written in a span of time: for a broker that lost what it had
 * acknowledged. Consumers know repeats by event_id and by their own keys. The oldest p_limit are taken; answers how
 * many, and until when: repeat from there while it is p_limit.
 *
 * Called by   operators
 * Writes      aivedio.outbox_events, aivedio.queue_marks, aivedio.operator_actions
 * Locks       the outbox rows; the marks
 * Raises      VC413  no reason is given
 *             VC907  the span ends before it begins, or p_limit is not within 1 and 100,000
 */
create or replace function aivedio.republish(
  p_from  timestamptz,
  p_to    timestamptz,
  p_who   text,
  p_why   text,
  p_limit integer default 10000
)
returns jsonb
language plpgsql
volatile
security definer  -- operators republish without writing the outbox
set search_path = ''
set plan_cache_mode = force_custom_plan  -- a generic plan locks every partition
as $republish$
declare
  v_first constant bigint := aivedio._first_id('outbox_events', p_from);
  v_ids   bigint[];
  v_until timestamptz;
  v_tasks uuid[];
begin
  perform aivedio._require_reason(p_why);
  if p_to < p_from or p_limit not between 1 and 100000 then
    raise exception 'nothing can be republished like this'
      using errcode = 'VC907',
            detail  = pg_catalog.format('from %s to %s, %s at most', p_from, p_to, p_limit),
            hint    = 'Give the earlier moment first, and a limit from 1 to 100000.';
  end if;

  select pg_catalog.array_agg(owed.id), pg_catalog.array_agg(distinct owed.aggregate_id), max(owed.created_at)
  into v_ids, v_tasks, v_until
  from (
    select message.id, message.aggregate_id, message.created_at
    from aivedio.outbox_events as message
    where message.id >= v_first
      and message.created_at between p_from and p_to
      and message.publish_status = 'published'
    order by message.id
    limit p_limit
  ) as owed;

  update aivedio.outbox_events as message
  set publish_status = 'pending',
      published_at   = null
  where message.id = any (v_ids)
    and message.publish_status = 'published';

  if v_ids is not null then
    -- A scan starts at the mark, and these rows lie below it.
    update aivedio.queue_marks as mark
    set low  = least(mark.low, v_ids[1] - 1),
        high = null
    where mark.queue = 'outbox';

    perform aivedio._audit(
      p_who, 'republish', v_ids[1]::text, p_why,
      pg_catalog.jsonb_build_object(
        'from', p_from, 'to', p_to, 'messages', pg_catalog.cardinality(v_ids), 'last_id', v_ids[pg_catalog.cardinality(v_ids)]
      )
    );
    perform aivedio._ring_outbox(v_tasks);
  end if;

  return pg_catalog.jsonb_build_object('messages', coalesce(pg_catalog.cardinality(v_ids), 0), 'until', v_until);
end;
$republish$;

comment on function aivedio.republish is
  'Stage 90: send published messages of a span of time again, the oldest p_limit, audited; answers {messages, until}.';

grant execute on function aivedio.republish to aivedio_operator;
