/*
 * Stage 90 · operate · purge_dead_letters
 *
 * Throws away the dead letters of a consumer group that died before a moment.
 *
 * Called by   operators
 * Writes      pgmq's archive table, aivedio.operator_actions, aivedio.alarms
 * Locks       the letters; then the alarm's row
 * Raises      42P01  the group has no queue here
 */
create or replace function aivedio.purge_dead_letters(
  p_group  text,
  p_before timestamptz,
  p_who    text,
  p_why    text
)
returns integer
language plpgsql
volatile
security definer  -- operators purge without writing pgmq's tables
set search_path = ''
as $purge_dead_letters$
declare
  v_purged integer;
begin
  execute pg_catalog.format(
    'delete from pgmq.%I as dead where dead.archived_at < $1', 'a_' || aivedio._bus_queue(p_group)
  )
  using p_before;
  get diagnostics v_purged = row_count;

  if v_purged > 0 then
    perform aivedio._audit(
      p_who, 'purge_dead_letters', p_group, p_why,
      pg_catalog.jsonb_build_object('messages', v_purged, 'before', p_before)
    );
    perform aivedio._settle_dead_letters(p_group);
  end if;
  return v_purged;
end;
$purge_dead_letters$;

comment on function aivedio.purge_dead_letters is
  'Stage 90: throw away dead letters of a consumer group that died before a moment, audited; answers how many.';

grant execute on function aivedio.purge_dead_letters to aivedio_operator;
