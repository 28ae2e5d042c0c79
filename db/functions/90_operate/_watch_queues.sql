/*
 * Stage 90 · operate · _watch_queues
 *
 * Raises alarms for what waits too long or holds others up: callbacks, outbox rows and messages older than
 * a minute, media whose source is about to expire, writing transactions and snapshots older than two
 * minutes (they keep marks from moving and dead rows from going; only pg_read_all_stats lets the owner see them).
 *
 * Called by   upkeep
 * Writes      aivedio.alarms
 * Locks       the alarms' rows, in order of kind and subject
 */
create or replace function aivedio._watch_queues()
returns integer
language plpgsql
volatile
set search_path = ''
as $_watch_queues$
declare
  v_now   constant timestamptz := aivedio._clock();
  v_alarm record;
  v_count integer := 0;
begin
  for v_alarm in
    select found.kind, found.subject, found.detail
    from (
      select 'inbox_late' as kind, 'inbox' as subject,
        pg_catalog.jsonb_build_object('waiting', count(*), 'oldest', min(inbox.received_at)) as detail
      from aivedio.provider_callback_inbox as inbox
      where inbox.process_status = 'pending'
        and inbox.received_at < v_now - interval '1 minute'
      having count(*) > 0
      union all
      select 'outbox_late', 'outbox',
        pg_catalog.jsonb_build_object('waiting', count(*), 'oldest', min(pending.created_at))
      from aivedio.outbox_events as pending
      where pending.publish_status = 'pending'
        and pending.created_at < v_now - interval '1 minute'
      having count(*) > 0
      union all
      select 'bus_late', behind.name, behind.status
      from pg_catalog.jsonb_each(aivedio.bus_status()) as behind (name, status)
      where (behind.status ->> 'oldest_s')::numeric > 60
      union all
      select 'media_rescue', operation.id::text,
        pg_catalog.jsonb_build_object('task_id', operation.task_id, 'rescue_deadline', operation.rescue_deadline)
      from aivedio.media_operations as operation
      where operation.status in ('pending', 'running')
        and operation.rescue_deadline < v_now + interval '15 minutes'
      union all
      select 'snapshot_held', 'database',
        pg_catalog.jsonb_build_object('sessions', count(*), 'oldest', min(session.xact_start))
      from pg_catalog.pg_stat_activity as session
      where session.datname = pg_catalog.current_database()
        and session.xact_start < v_now - interval '2 minutes'
      having count(*) > 0
    ) as found
    order by found.kind, found.subject
    limit 100
  loop
    perform aivedio._raise_alarm(v_alarm.kind, v_alarm.subject, v_alarm.detail);
    v_count := v_count + 1;
  end loop;
  return v_count;
end;
$_watch_queues$;

comment on function aivedio._watch_queues is
  'Stage 90: raise alarms for old queue rows, endangered media and long transactions; answers how many.';
