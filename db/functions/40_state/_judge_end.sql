/*
 * Stage 40 · state · _judge_end
 *
 * Decides about an observation of a task whose provider part is over. What counts is the attempt's own end, not
 * the task's: a success seen again after the media failed contradicts nothing. The first end stays, with one
 * exception: a provider whose profile declares revisions may correct itself with a higher one, as long as nothing
 * was published.
 *
 * Called by   _judge
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._judge_end(
  p_task        aivedio.generation_tasks,
  p_attempt     aivedio.task_attempts,
  p_observation aivedio.provider_observation
)
returns aivedio.judgement
language plpgsql
stable
set search_path = ''
as $_judge_end$
declare
  v_observed constant text := p_observation.normalized_status;
  v_result   aivedio.judgement;
begin
  v_result.progress_only := false;

  if v_observed in ('queued', 'running') then
    v_result.verdict := 'after_terminal';
  elsif v_observed = p_attempt.status then
    v_result.verdict := 'duplicate';
  elsif p_observation.provider_revision > coalesce(p_attempt.provider_revision, -1)
    and aivedio._follows_attempt(p_task.status, p_attempt.status)
    and exists (
      select 1
      from aivedio.providers as provider
      where provider.name = p_attempt.provider
        and provider.effective #>> '{fields,revision}' is not null
    )
  then
    v_result.verdict := 'applied';
    v_result.new_status := case v_observed when 'succeeded' then 'provider_succeeded' else v_observed end;
  else
    v_result.verdict := 'conflict';
  end if;

  return v_result;
end;
$_judge_end$;

comment on function aivedio._judge_end is
  'Stage 40: the verdict on an observation that comes after the attempt''s end.';
