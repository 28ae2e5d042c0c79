/*
 * Stage 90 · operate · _settle_dead_letters
 *
 * Closes a consumer group's dead_letter alarm once it has no dead letter left.
 *
 * Called by   requeue_dead_letters, purge_dead_letters
 * Writes      aivedio.alarms
 * Locks       the alarm's row
 */
create or replace function aivedio._settle_dead_letters(p_group text)
returns void
language plpgsql
volatile
set search_path = ''
as $_settle_dead_letters$
declare
  v_left boolean;
begin
  execute pg_catalog.format('select exists (select from pgmq.%I)', 'a_' || aivedio._bus_queue(p_group))
  into v_left;

  if not v_left then
    update aivedio.alarms as alarm
    set resolved_at = aivedio._clock()
    where alarm.kind = 'dead_letter'
      and alarm.subject = p_group
      and alarm.resolved_at is null;
  end if;
end;
$_settle_dead_letters$;

comment on function aivedio._settle_dead_letters is
  'Stage 90: close a consumer group''s dead_letter alarm when no dead letter is left.';
