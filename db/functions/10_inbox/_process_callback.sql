/*
 * Stage 10 · inbox · _process_callback
 *
 * Decides what one callback means and applies it.
 *
 *   clues name different attempts    a mapping case; nothing is applied; dead until somebody looks
 *   no attempt                       tried again with growing delays; at last dead, with a case
 *   unsigned, or too thin to judge   a hint: the attempt is polled now, nothing else
 *   anything else                    normalised and applied; the outputs of a success are kept
 *
 * Called by   process_inbox, inside its subtransaction
 * Writes      what _apply_locked and _keep_outputs write; aivedio.reconciliation_cases
 * Locks       nothing more than the caller, then the case's row
 * Raises      VC303, VC304 and whatever else a poisonous payload provokes
 */
create or replace function aivedio._process_callback(p_claim aivedio.claimed_callback)
returns aivedio.processed_callback
language plpgsql
volatile
set search_path = ''
as $_process_callback$
declare
  v_inbox       aivedio.provider_callback_inbox;
  v_profile     jsonb;
  v_observation aivedio.provider_observation;
  v_applied     aivedio.applied;
  v_done        aivedio.processed_callback;
begin
  select inbox.*
  into strict v_inbox
  from aivedio.provider_callback_inbox as inbox
  where inbox.id = p_claim.inbox_id;

  v_done.inbox_id := v_inbox.id;
  v_done.attempt_id := p_claim.attempt_id;
  v_done.alarm_subject := v_inbox.provider;

  if not p_claim.agrees then
    perform aivedio._refuse_mapping(v_inbox, p_claim.attempt_id);
    v_done.attempt_id := null;
    v_done.status := 'dead';
    v_done.error := 'mapping';
    v_done.alarm := 'callback_mapping';
    return v_done;
  end if;

  if p_claim.attempt_id is null then
    return aivedio._process_orphan(v_inbox);
  end if;

  v_profile := aivedio._profile(v_inbox.provider);
  v_done.status := 'done';

  if v_inbox.signed then
    v_observation := aivedio._normalise(
      v_inbox.provider, v_profile, 'webhook', v_inbox.payload, pg_catalog.jsonb_build_object('headers', v_inbox.headers)
    );
  end if;

  if not v_inbox.signed or aivedio._is_thin(v_profile, v_observation) then
    perform aivedio._hint_poll(p_claim.attempt_id);
    v_done.verdict := 'hint';
    return v_done;
  end if;

  v_observation.attempt_id := p_claim.attempt_id;
  v_observation.inbox_id := v_inbox.id;
  v_observation.dedup_key := v_inbox.dedup_key;
  v_observation.provider_event_id := v_inbox.provider_event_id;
  v_observation.received_at := v_inbox.received_at;
  v_observation.payload_hash := v_inbox.payload_hash;
  v_observation.trace_id := v_inbox.trace_id;

  v_applied := aivedio._apply_locked(v_observation);
  if v_observation.output_refs is not null then
    perform aivedio._keep_outputs(v_observation);
  end if;

  v_done.verdict := v_applied.verdict;
  if v_applied.event_id is not null then
    v_done.emitted := v_applied.task_id;
  end if;
  return v_done;
end;
$_process_callback$;

comment on function aivedio._process_callback is
  'Stage 10: apply one claimed callback under locks that the caller holds; answers what became of it.';
