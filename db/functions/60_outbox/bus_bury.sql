/*
 * Stage 60 · outbox · bus_bury
 *
 * Keeps a message of a bus outside the database as a dead letter, where those of the embedded bus are:
 * so operators list, requeue and purge both kinds with the same functions. A requeued one is delivered
 * from the group's queue here. Told twice of one event, which a consumer does that died before the bus
 * heard of it, it keeps one letter and answers false.
 *
 * Called by   relay/rocketmq_subscription.py, as aivedio_consumer
 * Writes      pgmq's archive table, aivedio.alarms
 * Locks       an advisory lock of the group, until commit; then the alarm's row
 * Raises      42P01  the group has no queue here; call ensure_bus
 */
create or replace function aivedio.bus_bury(
  p_group text,
  p_task  uuid,
  p_tag   text,
  p_body  jsonb,
  p_tries integer,
  p_error text
)
returns boolean
language plpgsql
volatile
security definer  -- a consumer may bury messages through here without writing any table
set search_path = ''
as $bus_bury$
declare
  v_now    constant timestamptz := aivedio._clock();
  v_queue  constant text := aivedio._bus_queue(p_group);
  v_buried integer;
begin
  -- Two members may bury the same message at once; dead letters are rare, so one at a time will do.
  perform pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtext('aivedio_bus_bury'), pg_catalog.hashtext(p_group));

  execute pg_catalog.format(
    $bury$
      insert into pgmq.%1$I (msg_id, read_ct, enqueued_at, last_read_at, archived_at, vt, message, headers)
      select pg_catalog.nextval('pgmq.%2$I'), $1, $2, $2, $2, $2, $3, $4
      where not exists (
        select
        from pgmq.%1$I as letter
        where letter.message = $3
      )
    $bury$,
    'a_' || v_queue, 'q_' || v_queue || '_msg_id_seq'
  )
  using
    p_tries, v_now, p_body,
    pg_catalog.jsonb_build_object('task', p_task, 'tag', p_tag, 'error', pg_catalog.left(p_error, 500));
  get diagnostics v_buried = row_count;

  if v_buried > 0 then
    perform aivedio._raise_alarm(
      'dead_letter', p_group,
      pg_catalog.jsonb_build_object('messages', v_buried, 'last_error', pg_catalog.left(p_error, 500))
    );
  end if;

  return v_buried > 0;
end;
$bus_bury$;

comment on function aivedio.bus_bury is
  'Stage 60: keep a message of a bus outside the database as a dead letter of its group, once; false if it is there.';

grant execute on function aivedio.bus_bury to aivedio_consumer;
