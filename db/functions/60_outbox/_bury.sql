/*
 * Stage 60 · outbox · _bury
 *
 * Moves messages of a group from its queue to pgmq's archive, which holds nothing but dead letters
 * (an acknowledged message is deleted), with the reason among their headers, and raises an alarm.
 *
 * Called by   bus_dead, bus_read
 * Writes      pgmq's queue and archive tables, aivedio.alarms
 * Locks       the messages; then the alarm's row
 */
create or replace function aivedio._bury(
  p_group text,
  p_ids   bigint[],
  p_error text
)
returns integer
language plpgsql
volatile
set search_path = ''
as $_bury$
declare
  v_now    constant timestamptz := aivedio._clock();
  v_buried integer;
begin
  execute pg_catalog.format(
    $bury$
      with dead as (
        delete from pgmq.%I as letter
        where letter.msg_id = any ($1)
        returning letter.*
      )
      insert into pgmq.%I (msg_id, read_ct, enqueued_at, last_read_at, archived_at, vt, message, headers)
      select
        dead.msg_id, dead.read_ct, dead.enqueued_at, dead.last_read_at, $2, dead.vt, dead.message,
        dead.headers || pg_catalog.jsonb_build_object('error', pg_catalog.left($3, 500))
      from dead
    $bury$,
    'q_' || aivedio._bus_queue(p_group), 'a_' || aivedio._bus_queue(p_group)
  )
  using p_ids, v_now, p_error;
  get diagnostics v_buried = row_count;

  if v_buried > 0 then
    perform aivedio._raise_alarm(
      'dead_letter', p_group,
      pg_catalog.jsonb_build_object('messages', v_buried, 'last_error', pg_catalog.left(p_error, 500))
    );
  end if;

  return v_buried;
end;
$_bury$;

comment on function aivedio._bury is
  'Stage 60: move messages of a consumer group to its dead letters, with the reason, and raise an alarm.';
