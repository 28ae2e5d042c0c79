/*
 * Stage 90 · operate · list_cases
 *
 * The open reconciliation cases, newest first, with their evidence and what each may be resolved as. p_kind leaves
 * only those of one kind.
 *
 * Called by   edge/console; operators
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio.list_cases(
  p_kind  text default null,
  p_limit integer default 50
)
returns setof aivedio.listed_case
language sql
stable
security definer  -- operators look without reading the table
set search_path = ''
as $list_cases$
  select
    known.id, known.kind, known.subject, known.provider, known.task_id, known.attempt_id, known.opened_at,
    known.last_at, known.evidence,
    aivedio._resolutions(known, attempt)
  from aivedio.reconciliation_cases as known
  left join aivedio.task_attempts as attempt on attempt.id = known.attempt_id
  where known.state = 'open'
    and (p_kind is null or known.kind = p_kind)
  order by known.opened_at desc, known.id
  limit least(p_limit, 500);
$list_cases$;

comment on function aivedio.list_cases is
  'Stage 90: open reconciliation cases, newest first, with evidence and what each may be resolved as.';

grant execute on function aivedio.list_cases to aivedio_operator;
