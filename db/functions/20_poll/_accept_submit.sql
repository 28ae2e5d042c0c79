/*
 * Stage 20 · poll · _accept_submit
 *
 * The provider has accepted an attempt under its own id. If a callback was faster, the attempt has moved on
 * and only the id is added. An id that another attempt holds is a contradiction: a mapping case, and
 * for this attempt the outcome stays unknown. An attempt that we gave up, or withdrew, keeps its end and gets the id:
 * something runs at the provider that nobody waits for, which is a case.
 *
 * Called by   _learn_job, settle_submit, record_submission, holding stream → task → attempt
 * Writes      aivedio.task_attempts, aivedio.reconciliation_cases; what _emit writes
 * Locks       the case's row
 */
create or replace function aivedio._accept_submit(
  p_attempt          aivedio.task_attempts,
  p_profile          jsonb,
  p_provider_task_id text
)
returns aivedio.applied
language plpgsql
volatile
set search_path = ''
as $_accept_submit$
declare
  v_now   constant timestamptz := aivedio._clock();
  v_fresh constant boolean := p_attempt.status in ('submitting', 'submit_unknown');
  v_late  constant boolean := p_attempt.submit_state = 'withdrawn'
    or coalesce(p_attempt.error_class = 'given_up', false);
  v_task  aivedio.generation_tasks;
begin
  if p_attempt.provider_task_id = p_provider_task_id and not v_fresh then
    return aivedio._settled('duplicate', p_attempt.id);
  end if;

  begin
    update aivedio.task_attempts as attempt
    set provider_task_id   = p_provider_task_id,
        submit_state       = 'accepted',
        submitted_at       = coalesce(attempt.submitted_at, v_now),
        submit_lease_until = null,
        status             = case when v_fresh then 'submitted' else attempt.status end,
        known_status       = case when v_fresh then 'submitted' else attempt.known_status end,
        next_poll_at       = case
          when attempt.terminal_at is null
          then v_now + aivedio._poll_delay(p_profile, 'submitted', 0) * aivedio._sparse_factor(p_attempt)
        end,
        updated_at         = v_now
    where attempt.id = p_attempt.id;
  exception
    when unique_violation then
      perform aivedio._open_case(
        'mapping', p_attempt.id::text, p_attempt, null,
        pg_catalog.jsonb_build_object(
          'why', 'another attempt holds this provider_task_id', 'provider_task_id', p_provider_task_id
        )
      );
      -- Also what is due: somebody says that it was submitted, so it must not be submitted on a guess.
      if p_attempt.submit_state in ('due', 'application', 'sent') then
        perform aivedio._lose_submit(p_attempt, 'its id at the provider is said to be that of another attempt');
      end if;
      return aivedio._settled('conflict', p_attempt.id);
  end;

  if v_late then
    perform aivedio._open_case(
      'stale_success', p_attempt.id::text, p_attempt, null,
      pg_catalog.jsonb_build_object(
        'why', 'the provider accepted what we had given up', 'provider_task_id', p_provider_task_id
      )
    );
    return aivedio._settled('after_terminal', p_attempt.id);
  end if;

  perform aivedio._resolve_cases(
    'submit_unknown', p_attempt.id::text, 'accepted', 'aivedio', 'the provider holds the attempt under a known id'
  );

  select task.*
  into strict v_task
  from aivedio.generation_tasks as task
  where task.id = p_attempt.task_id;

  if not v_fresh or v_task.current_attempt_id <> p_attempt.id or v_task.status <> 'submitting' then
    return aivedio._settled('applied', p_attempt.id);
  end if;

  v_task.status := 'submitted';
  v_task := aivedio._emit(v_task, p_attempt.id, 'submit', v_now);
  return aivedio._command_result('applied', v_task, true);
end;
$_accept_submit$;

comment on function aivedio._accept_submit is
  'Stage 20: record that the provider accepted an attempt, and under which id.';
