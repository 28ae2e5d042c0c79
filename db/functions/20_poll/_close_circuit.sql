/*
 * Stage 20 · poll · _close_circuit
 *
 * A provider answered properly: its circuit closes and its faults are forgotten. While all is well, nothing is
 * written.
 *
 * Called by   _note_success, _learn_from_submit, after cases, before quotas; reset_circuit, rotate_credential
 * Writes      aivedio.provider_circuits
 * Locks       the circuit's row, only when it changes
 */
create or replace function aivedio._close_circuit(
  p_provider   text,
  p_credential text
)
returns void
language plpgsql
volatile
set search_path = ''
as $_close_circuit$
begin
  update aivedio.provider_circuits as circuit
  set state       = 'closed',
      failures    = 0,
      openings    = 0,
      reason      = null,
      opened_at   = null,
      retry_at    = null,
      probe_until = null
  where circuit.provider = p_provider
    and circuit.credential = p_credential
    and (circuit.state <> 'closed' or circuit.failures > 0);
end;
$_close_circuit$;

comment on function aivedio._close_circuit is
  'Stage 20: close a credential''s circuit and forget its faults.';
