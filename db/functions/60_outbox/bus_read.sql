/*
 * Stage 60 · outbox · bus_read
 *
 * Hands out the oldest due messages of a group and hides them for p_visibility_s seconds; one that is
 * not acknowledged until then is due again. A message read more often than the group's max_tries is
 * a dead letter: it moves to the archive instead, so that one bad message cannot be tried for ever.
 *
 * The scan starts at the queue's safe low-water mark, so that it stays as fast as ever while an old
 * snapshot elsewhere keeps the acknowledged rows from being removed.
 *
 * Called by   relay/pgmq.py, as aivedio_consumer
 * Writes      pgmq's queue and archive tables, aivedio.queue_marks, aivedio.alarms
 * Locks       the messages handed out, with skip locked, in id order
 * Raises      VC612  there is no such consumer group
 *             42P01  the group has no queue; call ensure_bus
 */
create or replace function aivedio.bus_read(
  p_group        text,
  p_limit        integer,
  p_visibility_s double precision
)
returns setof aivedio.bus_message
language plpgsql
volatile
security definer  -- a consumer may take messages through here without reading any table
set search_path = ''
as $bus_read$
declare
  v_now        constant timestamptz := aivedio._clock();
  v_queue      constant text := 'q_' || aivedio._bus_queue(p_group);
  v_mark       constant text := 'bus_' || p_group;
  v_max_tries  integer;
  v_low        bigint;
  v_high       bigint;
  v_unfinished bigint;
  v_snapshot   pg_snapshot;
  v_message    aivedio.bus_message;
  v_dead       bigint[] := array[]::bigint[];
begin
  select consumers.max_tries
  into v_max_tries
  from aivedio.consumer_groups as consumers
  where consumers.name = p_group;

  if not found then
    raise exception 'there is no such consumer group'
      using errcode = 'VC612',
            detail  = pg_catalog.format('group %s', p_group),
            hint    = 'Groups are the rows of aivedio.consumer_groups; ensure_bus makes their queues.';
  end if;

  select mark.low
  into v_low
  from aivedio.queue_marks as mark
  where mark.queue = v_mark
    and mark.shard = 0;
  v_low := coalesce(v_low, 0);

  -- The order of these matters, and that nothing is written before them: see _advance_mark. pgmq's
  -- sequence has drawn nothing yet when its last value is null.
  v_high := coalesce(
    pg_catalog.pg_sequence_last_value(pg_catalog.format('pgmq.%I', v_queue || '_msg_id_seq')::regclass), 0
  );
  v_snapshot := pg_catalog.pg_current_snapshot();
  execute pg_catalog.format('select pg_catalog.min(msg_id) from pgmq.%I where msg_id > $1', v_queue)
  into v_unfinished
  using v_low;
  v_low := aivedio._advance_mark(v_mark, 0::smallint, v_high, v_snapshot, v_unfinished);

  for v_message in
    execute pg_catalog.format(
      $read$
        with due as materialized (
          select candidate.msg_id
          from pgmq.%1$I as candidate
          where candidate.msg_id > $1
            and candidate.vt <= $2
          order by candidate.msg_id
          limit $3
          for no key update skip locked
        ),
        taken as (
          update pgmq.%1$I as target
          set vt           = $2 + pg_catalog.make_interval(secs => $4),
              read_ct      = target.read_ct + 1,
              last_read_at = $2
          from due
          where target.msg_id = due.msg_id
          returning target.msg_id, target.read_ct, target.headers, target.message
        )
        select taken.msg_id, taken.read_ct, (taken.headers ->> 'task')::uuid, taken.headers ->> 'tag', taken.message
        from taken
        order by taken.msg_id
      $read$,
      v_queue
    )
    using v_low, v_now, p_limit, p_visibility_s
  loop
    if v_message.read_count > v_max_tries then
      v_dead := v_dead || v_message.msg_id;
    else
      return next v_message;
    end if;
  end loop;

  if pg_catalog.cardinality(v_dead) > 0 then
    perform aivedio._bury(p_group, v_dead, pg_catalog.format('read %s times and never acknowledged', v_max_tries));
  end if;
end;
$bus_read$;

comment on function aivedio.bus_read is
  'Stage 60: take the oldest due messages of a consumer group; without an acknowledgement they come again.';

grant execute on function aivedio.bus_read to aivedio_consumer;
