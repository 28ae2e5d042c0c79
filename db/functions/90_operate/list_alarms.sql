/*
 * Stage 90 · operate · list_alarms
 *
 * The open alarms, the latest first. What a provider answered is left out: operators' pages show our words only.
 *
 * Called by   edge/console; operators
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio.list_alarms(p_limit integer default 100)
returns setof aivedio.listed_alarm
language sql
stable
security definer  -- operators look without reading the table
set search_path = ''
as $list_alarms$
  select alarm.kind, alarm.subject, alarm.count, alarm.first_at, alarm.last_at, alarm.detail - 'detail'
  from aivedio.alarms as alarm
  where alarm.resolved_at is null
  order by alarm.last_at desc, alarm.kind, alarm.subject
  limit least(p_limit, 500);
$list_alarms$;

comment on function aivedio.list_alarms is
  'Stage 90: open alarms, the latest first, without samples of what providers answered.';

grant execute on function aivedio.list_alarms to aivedio_operator;
