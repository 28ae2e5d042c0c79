/*
 * Stage 10 · inbox · _process_orphan
 *
 * A callback that belongs to no attempt, yet: it may have overtaken the answer to our own submission. It is
 * tried again with doubled delays, and ends dead, in the ledger and as a case, but is never dropped.
 *
 * Called by   _process_callback
 * Writes      aivedio.reconciliation_cases, aivedio.observations
 * Locks       the case's row
 */
create or replace function aivedio._process_orphan(p_inbox aivedio.provider_callback_inbox)
returns aivedio.processed_callback
language plpgsql
volatile
set search_path = ''
as $_process_orphan$
declare
  v_observation aivedio.provider_observation;
  v_verdict     aivedio.applied;
  v_done        aivedio.processed_callback;
begin
  v_done.inbox_id := p_inbox.id;
  v_done.verdict := 'orphan';
  v_done.alarm_subject := p_inbox.provider;
  -- The first seconds are ordinary: the submission's answer may just be on its way.
  v_done.alarm := case when p_inbox.retry_count >= 3 then 'callback_orphan' end;

  if p_inbox.retry_count < aivedio._setting('orphan_retries') then
    v_done.status := 'retry';
    return v_done;
  end if;

  v_done.status := 'dead';
  v_done.error := 'orphan';

  perform aivedio._open_case(
    'orphan', p_inbox.provider || ':' || coalesce(p_inbox.provider_task_id, p_inbox.dedup_key), null, p_inbox.provider,
    pg_catalog.jsonb_build_object('inbox_id', p_inbox.id, 'client_request_id', p_inbox.client_request_id)
  );

  v_observation.provider := p_inbox.provider;
  v_observation.source := 'webhook';
  v_observation.received_at := p_inbox.received_at;
  v_observation.payload_hash := p_inbox.payload_hash;
  v_observation.inbox_id := p_inbox.id;
  v_observation.trace_id := p_inbox.trace_id;
  v_verdict.verdict := 'orphan';
  perform aivedio._record_observation(v_observation, null, v_verdict);
  return v_done;
end;
$_process_orphan$;

comment on function aivedio._process_orphan is
  'Stage 10: put off a callback without an attempt, or give it up visibly.';
