/*
 * Stage 20 · poll · _probe_circuits
 *
 * Marks the circuits of claimed attempts that are not closed as being probed: until somebody answers, or the lease is
 * over, no other request goes through.
 *
 * Called by   claim_polls, claim_submits, after attempts and cases
 * Writes      aivedio.provider_circuits
 * Locks       the circuits' rows, in order of provider and credential
 */
create or replace function aivedio._probe_circuits(
  p_attempts uuid[],
  p_until    timestamptz
)
returns void
language plpgsql
volatile
set search_path = ''
as $_probe_circuits$
begin
  perform 1
  from aivedio.provider_circuits as circuit
  where circuit.state <> 'closed'
    and (circuit.provider, circuit.credential) in (
      select attempt.provider, attempt.credential
      from aivedio.task_attempts as attempt
      where attempt.id = any (p_attempts)
    )
  order by circuit.provider, circuit.credential
  for no key update;

  if not found then
    return;
  end if;

  update aivedio.provider_circuits as circuit
  set state       = 'half_open',
      probe_until = p_until
  where circuit.state <> 'closed'
    and (circuit.provider, circuit.credential) in (
      select attempt.provider, attempt.credential
      from aivedio.task_attempts as attempt
      where attempt.id = any (p_attempts)
    );
end;
$_probe_circuits$;

comment on function aivedio._probe_circuits is
  'Stage 20: mark the circuits of these attempts as half open until a moment, unless they are closed.';
