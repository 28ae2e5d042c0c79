/*
 * Stage 40 · state · _update_attempt
 *
 * Lets an attempt remember what its provider said. Its own status moves forward only, its first end
 * stays, whatever the task does; polling stops at that end, except that a conflict is looked at
 * again, slowly, for as long as its case is open.
 *
 * Called by   _apply_locked
 * Writes      aivedio.task_attempts, aivedio.reconciliation_cases
 * Locks       the cases' rows: the caller holds the attempt
 */
create or replace function aivedio._update_attempt(
  p_attempt     aivedio.task_attempts,
  p_observation aivedio.provider_observation,
  p_verdict     text
)
returns void
language plpgsql
volatile
set search_path = ''
as $_update_attempt$
declare
  v_now      constant timestamptz := aivedio._clock();
  v_observed constant text := p_observation.normalized_status;
  v_accepts  constant boolean := p_attempt.submit_state <> 'accepted';
  v_moves    constant boolean := p_verdict in ('applied', 'coalesced', 'duplicate')
    or (
      p_verdict = 'stale_attempt'
      and p_attempt.terminal_at is null
      and aivedio._in_sequence(p_attempt, p_observation)
    );
  v_ends     constant boolean := v_observed in ('succeeded', 'failed', 'canceled')
    and (p_verdict = 'applied' or (v_moves and p_attempt.terminal_at is null));
begin
  if v_ends then
    p_attempt.terminal_seen_by := '{}';
    p_attempt.status := v_observed;
    p_attempt.known_status := v_observed;
    p_attempt.terminal_at := v_now;
    p_attempt.next_poll_at := null;
    p_attempt.cancel_state := nullif(p_attempt.cancel_state, 'due');
    p_attempt.error_class := p_observation.error_class;
    p_attempt.error_code := p_observation.error_code;
    p_attempt.error_detail := p_observation.error_detail;
    perform aivedio._end_cases(p_attempt.id);
  elsif v_moves and v_observed in ('queued', 'running') then
    if aivedio._status_rank(v_observed) >= aivedio._status_rank(p_attempt.known_status) then
      p_attempt.known_status := v_observed;
    end if;
    p_attempt.status := p_attempt.known_status;
    if p_observation.progress > coalesce(p_attempt.progress, -1) then
      p_attempt.progress := p_observation.progress;
      p_attempt.progress_at := v_now;
    end if;
  end if;

  if p_attempt.next_poll_at is null then
    p_attempt.next_poll_at := case
      when p_verdict = 'conflict' then aivedio._if_polled(p_attempt.provider, v_now + interval '5 minutes')
      -- It overtook the answer to the submission, which may never come: polling begins with it, whatever it says.
      when v_accepts and p_attempt.terminal_at is null
        then aivedio._if_polled(p_attempt.provider, v_now + interval '10 seconds')
    end;
  end if;

  if v_observed in ('succeeded', 'failed', 'canceled')
    and (v_ends or p_verdict = 'duplicate')
    and p_observation.source <> all (p_attempt.terminal_seen_by)
  then
    p_attempt.terminal_seen_by := p_attempt.terminal_seen_by || p_observation.source;
  end if;

  update aivedio.task_attempts as attempt
  set status            = p_attempt.status,
      known_status      = p_attempt.known_status,
      progress          = p_attempt.progress,
      progress_at       = p_attempt.progress_at,
      terminal_at       = p_attempt.terminal_at,
      terminal_seen_by  = p_attempt.terminal_seen_by,
      next_poll_at      = p_attempt.next_poll_at,
      -- Nobody asks the second question any more, unless somebody just does.
      poll_answer       = case
        when p_attempt.terminal_at is null or attempt.poll_lease_until is not null then attempt.poll_answer
      end,
      cancel_state      = p_attempt.cancel_state,
      error_class       = p_attempt.error_class,
      error_code        = p_attempt.error_code,
      error_detail      = p_attempt.error_detail,
      provider_task_id  = coalesce(attempt.provider_task_id, p_observation.provider_task_id),
      -- Whoever speaks of it, the provider has it: it must not be submitted again, nor be taken for lost.
      submit_state      = 'accepted',
      submitted_at      = coalesce(attempt.submitted_at, v_now),
      last_provider_seq = case
        when v_moves then greatest(attempt.last_provider_seq, p_observation.provider_sequence)
        else attempt.last_provider_seq
      end,
      last_provider_at  = coalesce(p_observation.provider_occurred_at, attempt.last_provider_at),
      provider_revision = case
        when v_moves then greatest(attempt.provider_revision, p_observation.provider_revision)
        else attempt.provider_revision
      end,
      last_callback_at  = case p_observation.source
        when 'webhook' then coalesce(p_observation.received_at, v_now)
        else attempt.last_callback_at
      end,
      poll_failures     = case when v_observed is null then attempt.poll_failures else 0 end,
      repeated_callbacks = attempt.repeated_callbacks
        + (p_verdict = 'duplicate' and p_observation.source = 'webhook')::integer,
      updated_at        = v_now
  where attempt.id = p_attempt.id;
end;
$_update_attempt$;

comment on function aivedio._update_attempt is
  'Stage 40: record on the attempt what an observation said, forward only.';
