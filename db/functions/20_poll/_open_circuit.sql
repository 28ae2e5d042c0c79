/*
 * Stage 20 · poll · _open_circuit
 *
 * Stops all polls and submissions with a credential for a while: longer each time it has to be opened again without
 * a success between, up to ten minutes.
 *
 * Called by   _count_fault, _reschedule_poll, _learn_from_submit, after cases, before quotas
 * Writes      aivedio.provider_circuits
 * Locks       the circuit's row
 */
create or replace function aivedio._open_circuit(
  p_provider   text,
  p_credential text,
  p_reason     text
)
returns timestamptz
language plpgsql
volatile
set search_path = ''
as $_open_circuit$
declare
  v_now   constant timestamptz := aivedio._clock();
  v_retry timestamptz;
begin
  insert into aivedio.provider_circuits as circuit (provider, credential, state, failures, reason, opened_at, retry_at)
  values (p_provider, p_credential, 'open', 1, p_reason, v_now, v_now + aivedio._backoff(30, 600, 0))
  on conflict (provider, credential) do update
  set state       = 'open',
      failures    = circuit.failures + 1,
      reason      = excluded.reason,
      opened_at   = coalesce(circuit.opened_at, excluded.opened_at),
      retry_at    = v_now + aivedio._backoff(30, 600, circuit.openings),
      openings    = circuit.openings + 1,
      probe_until = null
  -- Answers to requests that were on their way when it opened do not open it again.
  where circuit.state <> 'open'
  returning circuit.retry_at into v_retry;

  return v_retry;
end;
$_open_circuit$;

comment on function aivedio._open_circuit is
  'Stage 20: open the circuit of a credential; answers until when, null when it was open already.';
