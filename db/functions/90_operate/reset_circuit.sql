/*
 * Stage 90 · operate · reset_circuit
 *
 * Closes the circuit of a provider's credential at once, for who knows that the cause is gone: a key was
 * replaced, a bill paid. Polls and submissions go on; should the cause be there still, it opens again.
 *
 * Called by   operators
 * Writes      aivedio.provider_circuits, aivedio.alarms, aivedio.operator_actions
 * Locks       the circuit's row; then the alarm's
 * Raises      VC413  no reason is given
 */
create or replace function aivedio.reset_circuit(
  p_provider   text,
  p_credential text,
  p_who        text,
  p_why        text
)
returns boolean
language plpgsql
volatile
security definer  -- operators close circuits without writing the table
set search_path = ''
as $reset_circuit$
declare
  v_circuit aivedio.provider_circuits;
begin
  perform aivedio._require_reason(p_why);

  select circuit.*
  into v_circuit
  from aivedio.provider_circuits as circuit
  where circuit.provider = p_provider
    and circuit.credential = p_credential
  for no key update;

  if not found or (v_circuit.state = 'closed' and v_circuit.failures = 0) then
    return false;
  end if;

  perform aivedio._close_circuit(p_provider, p_credential);
  perform aivedio._audit(
    p_who, 'reset_circuit', p_provider || ':' || p_credential, p_why, pg_catalog.to_jsonb(v_circuit)
  );
  perform aivedio._ring('aivedio_submit');
  perform aivedio._ring('aivedio_poll');
  return true;
end;
$reset_circuit$;

comment on function aivedio.reset_circuit is
  'Stage 90: close the circuit of a provider''s credential now, audited; false when it was closed.';

grant execute on function aivedio.reset_circuit to aivedio_operator;
