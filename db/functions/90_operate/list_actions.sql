/*
 * Stage 90 · operate · list_actions
 *
 * What was done by hand, latest first: when, who, what, to what and why.
 *
 * Called by   edge/console; operators
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio.list_actions(p_limit integer default 50)
returns setof aivedio.listed_action
language sql
stable
security definer  -- operators look without reading the audit
set search_path = ''
as $list_actions$
  select action.id, action.at, action.actor, action.action, action.subject, action.reason
  from aivedio.operator_actions as action
  order by action.id desc
  limit least(p_limit, 500);
$list_actions$;

comment on function aivedio.list_actions is
  'Stage 90: what was done by hand, latest first.';

grant execute on function aivedio.list_actions to aivedio_operator;
