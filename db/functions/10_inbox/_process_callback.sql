/*
 * Stage 10 · inbox · _process_callback
 *
 * Decides what one callback means and applies it.
 *
 *   clues name different attempts    a mapping case; nothing is applied; dead until somebody looks
 *   no attempt                       tried again with growing delays; at last dead, with a case
 *   unsigned, or too thin to judge   a hint: the attempt is polled now; a signed one may bring the provider's id of it
 *   anything else                    normalised and applied; the outputs of a success are kept
 *
 * Called by   _apply_callbacks, inside its subtransaction
 * Writes      what _apply_locked, _keep_outputs and _learn_job write; aivedio.reconciliation_cases
 * Locks       nothing more than the caller, then the case's row
 * Raises      VC303, VC304 and whatever else a poisonous payload provokes
 */
create or replace function aivedio._process_callback(
  p_claim   aivedio.claimed_callback,
  p_inbox   aivedio.provider_callback_inbox,
  p_profile jsonb
)
returns aivedio.processed_callback
language plpgsql
volatile
set search_path = ''
as $_process_callback$
declare
  v_observation aivedio.provider_observation;
  v_applied     aivedio.applied;
  v_done        aivedio.processed_callback;
begin
  v_done.inbox_id := p_inbox.id;
  v_done.attempt_id := p_claim.attempt_id;
  v_done.alarm_subject := p_inbox.provider;

  if not p_claim.agrees then
    perform aivedio._refuse_mapping(p_inbox, p_claim.attempt_id);
    v_done.attempt_id := null;
    v_done.status := 'dead';
    v_done.error := 'mapping';
    v_done.alarm := 'callback_mapping';
    return v_done;
  end if;

  if p_claim.attempt_id is null then
    return aivedio._process_orphan(p_inbox);
  end if;

  v_done.status := 'done';

  if p_inbox.signed then
    v_observation := aivedio._normalise(
      p_inbox.provider, p_profile, 'webhook', p_inbox.payload, pg_catalog.jsonb_build_object('headers', p_inbox.headers)
    );
  end if;

  if not p_inbox.signed or aivedio._is_thin(p_profile, v_observation) then
    -- An unsigned one was not read: it brings no id.
    v_applied := aivedio._learn_job(p_claim.attempt_id, p_profile, v_observation.provider_task_id);
    perform aivedio._hint_poll(p_claim.attempt_id);
    if v_applied.event_id is not null then
      v_done.emitted := v_applied.task_id;
    end if;
    v_done.verdict := 'hint';
    return v_done;
  end if;

  v_observation.attempt_id := p_claim.attempt_id;
  v_observation.inbox_id := p_inbox.id;
  v_observation.dedup_key := p_inbox.dedup_key;
  v_observation.provider_event_id := p_inbox.provider_event_id;
  v_observation.received_at := p_inbox.received_at;
  v_observation.payload_hash := p_inbox.payload_hash;
  v_observation.trace_id := p_inbox.trace_id;

  v_applied := aivedio._apply_locked(v_observation);
  if v_observation.output_refs is not null and v_applied.verdict <> 'stale_sequence' then
    perform aivedio._keep_outputs(v_observation);
  end if;

  v_done.verdict := v_applied.verdict;
  if v_applied.verdict = 'unknown_word' then
    v_done.alarm := 'unknown_word';
    v_done.alarm_subject := p_inbox.provider || ':' || coalesce(v_observation.provider_word, '');
  end if;
  if v_applied.event_id is not null then
    v_done.emitted := v_applied.task_id;
  end if;
  return v_done;
end;
$_process_callback$;

comment on function aivedio._process_callback is
  'Stage 10: apply one claimed callback under locks that the caller holds; answers what became of it.';
