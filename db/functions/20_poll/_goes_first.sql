/*
 * Stage 20 · poll · _goes_first
 *
 * Whether an attempt's next poll goes before others: it is nearly finished, or somebody looks at its project.
 *
 * Called by   _reschedule_poll
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._goes_first(p_attempt aivedio.task_attempts)
returns boolean
language sql
stable
set search_path = ''
as $_goes_first$
  select coalesce(p_attempt.progress >= 80, false) or exists (
    select 1
    from aivedio.project_watchers as watcher
    where watcher.project_id = p_attempt.project_id
      and watcher.until > aivedio._clock()
  );
$_goes_first$;

comment on function aivedio._goes_first is
  'Stage 20: whether an attempt is nearly finished or watched, so that its poll goes first.';
