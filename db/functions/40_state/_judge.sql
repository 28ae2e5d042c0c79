/*
 * Stage 40 · state · _judge
 *
 * Decides what an observation means for a task, and decides only: it writes nothing. The matrix is
 * aivedio.task_transitions; around it stand the guards that no row can express.
 *
 *   1  an observation of another attempt than the current one      stale_attempt
 *   2  a word that the profile does not know                       unknown_word
 *   3  a provider sequence that falls, or stands still and differs  stale_sequence
 *   4  a task whose provider part is over                          by the attempt's own end
 *   5  progress that moved too little, or too soon                 coalesced
 *   6  a success after a cancel request                            by the project's policy
 *
 * Called by   _apply_locked, holding stream → task → attempt
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._judge(
  p_task        aivedio.generation_tasks,
  p_attempt     aivedio.task_attempts,
  p_observation aivedio.provider_observation
)
returns aivedio.judgement
language plpgsql
stable
set search_path = ''
as $_judge$
declare
  v_observed   constant text := p_observation.normalized_status;
  v_transition aivedio.task_transitions;
  v_settings   aivedio.project_settings;
  v_result     aivedio.judgement;
begin
  if p_task.current_attempt_id is distinct from p_attempt.id then
    v_result.verdict := 'stale_attempt';
    return v_result;
  end if;

  if v_observed is null then
    v_result.verdict := 'unknown_word';
    return v_result;
  end if;

  if not aivedio._in_sequence(p_attempt, p_observation) then
    v_result.verdict := 'stale_sequence';
    return v_result;
  end if;

  select transition.*
  into strict v_transition
  from aivedio.task_transitions as transition
  where transition.task_status = p_task.status
    and transition.observed = v_observed;

  if v_transition.verdict in ('duplicate', 'stale_status') then
    v_result.verdict := v_transition.verdict;
    return v_result;
  end if;

  if v_transition.verdict = 'terminal' then
    return aivedio._judge_end(p_task, p_attempt, p_observation);
  end if;

  if v_transition.verdict = 'progress' or p_task.cancel_requested_at is not null then
    select settings.*
    into v_settings
    from aivedio.project_settings as settings
    where settings.project_id = p_task.project_id;
  end if;

  if v_transition.verdict = 'progress' then
    v_result.verdict := case
      when coalesce(p_observation.progress, 0) <= coalesce(p_task.progress, 0) then 'duplicate'
      when p_observation.progress < coalesce(p_task.progress, 0) + coalesce(v_settings.progress_step, 5)
        then 'coalesced'
      when aivedio._clock() < p_task.progress_at + coalesce(v_settings.progress_interval, interval '1 second')
        then 'coalesced'
      else 'applied'
    end;
    v_result.new_status := v_transition.new_status;
    v_result.progress_only := true;
    return v_result;
  end if;

  v_result.verdict := 'applied';
  v_result.progress_only := false;
  v_result.new_status := v_transition.new_status;

  if v_transition.new_status = 'resume' then
    v_result.new_status := case
      when p_task.cancel_requested_at is not null then 'cancel_requested'
      when aivedio._status_rank(p_attempt.known_status) > aivedio._status_rank(v_observed) then p_attempt.known_status
      else v_observed
    end;
  elsif v_observed = 'succeeded'
    and p_task.cancel_requested_at is not null
    and v_settings.cancel_policy = 'discard'
  then
    v_result.new_status := 'canceled';
    v_result.discarded := true;
  end if;

  return v_result;
end;
$_judge$;

comment on function aivedio._judge is
  'Stage 40: the verdict on an observation and, if it applies, the task''s new status.';
