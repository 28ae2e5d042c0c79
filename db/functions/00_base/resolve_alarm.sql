/*
 * Stage 00 · base · resolve_alarm
 *
 * Closes the open alarm of a kind and subject. The next occurrence opens a new one.
 *
 * Called by   operators; upkeep when the cause is gone
 * Writes      aivedio.alarms, aivedio.operator_actions
 * Locks       the alarm's row
 */
create or replace function aivedio.resolve_alarm(
  p_kind    text,
  p_subject text,
  p_who     text,
  p_why     text
)
returns boolean
language plpgsql
volatile
security definer  -- operators may close alarms without writing the table
set search_path = ''
as $resolve_alarm$
declare
  v_now constant timestamptz := aivedio._clock();
begin
  update aivedio.alarms as alarm
  set resolved_at = v_now
  where alarm.kind = p_kind
    and alarm.subject = p_subject
    and alarm.resolved_at is null;

  if not found then
    return false;
  end if;

  perform aivedio._audit(p_who, 'resolve_alarm', p_kind || ':' || p_subject, p_why);
  return true;
end;
$resolve_alarm$;

comment on function aivedio.resolve_alarm is
  'Stage 00: close an open alarm, audited. False when none is open.';

grant execute on function aivedio.resolve_alarm to aivedio_operator;
