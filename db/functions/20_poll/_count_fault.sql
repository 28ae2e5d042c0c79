/*
 * Stage 20 · poll · _count_fault
 *
 * Counts a provider's fault against the credential's circuit, which opens after several in a row, and at once when
 * the fault answers a probe.
 *
 * Called by   _reschedule_poll, _learn_from_submit, after cases, before quotas
 * Writes      aivedio.provider_circuits
 * Locks       the circuit's row
 */
create or replace function aivedio._count_fault(
  p_provider   text,
  p_credential text,
  p_profile    jsonb,
  p_reason     text
)
returns timestamptz
language plpgsql
volatile
set search_path = ''
as $_count_fault$
declare
  v_most    constant integer := coalesce((p_profile #>> '{poll,circuit_faults}')::integer, 10);
  v_circuit aivedio.provider_circuits;
begin
  insert into aivedio.provider_circuits as circuit (provider, credential, failures, reason)
  values (p_provider, p_credential, 1, p_reason)
  on conflict (provider, credential) do update
  set failures = circuit.failures + 1,
      reason   = excluded.reason
  where circuit.state <> 'open'
  returning circuit.* into v_circuit;

  if v_circuit.state = 'half_open' or v_circuit.failures >= v_most then
    return aivedio._open_circuit(p_provider, p_credential, p_reason);
  end if;
  return null;
end;
$_count_fault$;

comment on function aivedio._count_fault is
  'Stage 20: count a fault of a provider; answers until when the circuit is open, if this opened it.';
