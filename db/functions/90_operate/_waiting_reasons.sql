/*
 * Stage 90 · operate · _waiting_reasons
 *
 * Why a task has not moved on, in words that do not change: first what stands between the task and its next step, then
 * what is late, then what a person should decide.
 *
 *   over                  it will not move any more
 *   application_submits   its application is to submit it
 *   submission_due        a submit process will send it now
 *   submission_delayed    it was turned away at the door, and is sent later
 *   submission_in_flight  a submit process waits for the provider's answer
 *   submission_unknown    nobody knows whether the provider has it
 *   circuit_open          its credential may not be used for now
 *   quota_empty           it may not be polled now: a bucket is empty, or waits after a refusal
 *   poll_scheduled        it will be polled later
 *   poll_due              a poll process will ask now
 *   poll_in_flight        a poll process waits for the provider's answer
 *   callback_only         it cannot be polled: a callback must come
 *   cancel_in_flight      the provider is being told to cancel
 *   media_unopened        the media consumer has not heard of its success
 *   media_waiting         an operation waits for a worker
 *   media_running         a worker holds an operation
 *   overdue               its deadline has passed
 *   case_open             somebody should look at a case of it
 *
 * Called by   why_waiting
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._waiting_reasons(
  p_task    aivedio.generation_tasks,
  p_attempt aivedio.task_attempts
)
returns text[]
language plpgsql
stable
set search_path = ''
as $_waiting_reasons$
declare
  v_now    constant timestamptz := aivedio._clock();
  v_shut   constant boolean := exists (
    select 1
    from aivedio._circuits(v_now) as circuit
    where circuit.p_provider = p_attempt.provider
      and circuit.p_credential = p_attempt.credential
      and not circuit.p_probe
  );
  v_why    text[] := '{}'::text[];
begin
  if p_task.terminal_at is not null then
    v_why := v_why || 'over'::text;
  elsif p_task.status in ('provider_succeeded', 'processing_media') then
    v_why := v_why || coalesce(
      (
        select case operation.status when 'running' then 'media_running' else 'media_waiting' end
        from aivedio.media_operations as operation
        where operation.task_id = p_task.id
          and operation.attempt_id = p_attempt.id
          and operation.status in ('pending', 'running')
        order by operation.created_at desc
        limit 1
      ),
      'media_unopened'
    );
  elsif p_attempt.submit_state = 'due' then
    v_why := v_why || case
      when v_shut then 'circuit_open'
      when p_attempt.submit_due_at > v_now then 'submission_delayed'
      else 'submission_due'
    end;
  elsif p_attempt.submit_state <> 'accepted' then
    v_why := v_why || case p_attempt.submit_state
      when 'application' then 'application_submits'
      when 'sent' then 'submission_in_flight'
      else 'submission_unknown'
    end;
  else
    v_why := v_why || case
      when p_attempt.poll_lease_until > v_now then 'poll_in_flight'
      when p_attempt.next_poll_at is null or p_attempt.provider_task_id is null then 'callback_only'
      when p_attempt.next_poll_at > v_now then 'poll_scheduled'
      when v_shut then 'circuit_open'
      when exists (
        select 1
        from aivedio._quotas_of(p_attempt) as quota
        where quota.blocked_until > v_now
          or aivedio._refilled(quota, quota.burst, v_now) < 1
      ) then 'quota_empty'
      else 'poll_due'
    end;
  end if;

  if p_task.terminal_at is null and p_attempt.cancel_state in ('due', 'sent') then
    v_why := v_why || 'cancel_in_flight'::text;
  end if;
  if p_attempt.terminal_at is null and p_attempt.deadline_at < v_now then
    v_why := v_why || 'overdue'::text;
  end if;
  if exists (
    select 1
    from aivedio.reconciliation_cases as known
    where known.task_id = p_task.id
      and known.state = 'open'
  ) then
    v_why := v_why || 'case_open'::text;
  end if;
  return v_why;
end;
$_waiting_reasons$;

comment on function aivedio._waiting_reasons is
  'Stage 90: why a task has not moved on, as words of a fixed list.';
