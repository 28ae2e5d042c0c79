/*
 * Stage 20 · poll · _alarm_lost_submits
 *
 * Raises the alarm for submissions whose outcome is unknown, one per provider.
 *
 * Called by   claim_submits, settle_submit, after everything else
 * Writes      aivedio.alarms
 * Locks       the alarms' rows, in order of provider
 */
create or replace function aivedio._alarm_lost_submits(p_attempts uuid[])
returns void
language plpgsql
volatile
set search_path = ''
as $_alarm_lost_submits$
declare
  v_lost record;
begin
  for v_lost in
    select attempt.provider, pg_catalog.jsonb_agg(attempt.id order by attempt.id) as attempts
    from aivedio.task_attempts as attempt
    where attempt.id = any (p_attempts)
      and attempt.submit_state = 'unknown'
    group by attempt.provider
    order by attempt.provider
  loop
    perform aivedio._raise_alarm(
      'submit_unknown', v_lost.provider, pg_catalog.jsonb_build_object('attempts', v_lost.attempts)
    );
  end loop;
end;
$_alarm_lost_submits$;

comment on function aivedio._alarm_lost_submits is
  'Stage 20: raise an alarm for those of these attempts whose submission has an unknown outcome.';
