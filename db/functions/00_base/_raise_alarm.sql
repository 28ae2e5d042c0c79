/*
 * Stage 00 · base · _raise_alarm
 *
 * Raises an alarm, or counts one more occurrence of it while it is open. A transaction that raises
 * several does so last, in order of kind and subject, so that two of them cannot deadlock.
 *
 * Called by   every stage
 * Writes      aivedio.alarms
 * Locks       the alarm's row, until commit
 */
create or replace function aivedio._raise_alarm(
  p_kind    text,
  p_subject text,
  p_detail  jsonb default '{}'
)
returns void
language plpgsql
volatile
set search_path = ''
as $_raise_alarm$
declare
  v_now constant timestamptz := aivedio._clock();
begin
  insert into aivedio.alarms as alarm (kind, subject, detail, first_at, last_at)
  values (p_kind, pg_catalog.left(p_subject, 300), p_detail, v_now, v_now)
  on conflict (kind, subject) where resolved_at is null
  do update
  set count   = alarm.count + 1,
      last_at = excluded.last_at,
      detail  = excluded.detail;
end;
$_raise_alarm$;

comment on function aivedio._raise_alarm is
  'Stage 00: raise an alarm or count its repetition: one open row per kind and subject.';
