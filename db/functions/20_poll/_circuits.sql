/*
 * Stage 20 · poll · _circuits
 *
 * The credentials that may not be used freely now: their circuit is not closed. One whose rest is over, or whose probe
 * was never answered, may be probed with one request; the others may not be used at all.
 *
 * Called by   _choose_submits, _waiting_reasons
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._circuits(
  p_now            timestamptz,
  out p_provider   text,
  out p_credential text,
  out p_probe      boolean
)
returns setof record
language sql
stable
set search_path = ''
as $_circuits$
  select
    circuit.provider, circuit.credential,
    case circuit.state
      when 'open' then coalesce(circuit.retry_at <= p_now, false)
      else coalesce(circuit.probe_until <= p_now, false)
    end
  from aivedio.provider_circuits as circuit
  where circuit.state <> 'closed';
$_circuits$;

comment on function aivedio._circuits is
  'Stage 20: credentials whose circuit is not closed, and whether one request may probe it now.';
