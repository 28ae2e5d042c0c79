/*
 * Stage 20 · poll · _lose_submit
 *
 * Nobody knows whether the provider has accepted an attempt. It is never submitted again on a guess: a case waits for a
 * callback, a lookup or an operator, and the task stays where it is.
 *
 * Called by   _accept_submit, claim_submits, settle_submit, holding stream → task → attempt
 * Writes      aivedio.task_attempts, aivedio.reconciliation_cases
 * Locks       the case's row
 */
create or replace function aivedio._lose_submit(
  p_attempt aivedio.task_attempts,
  p_why     text
)
returns void
language plpgsql
volatile
set search_path = ''
as $_lose_submit$
begin
  update aivedio.task_attempts as attempt
  set submit_state       = 'unknown',
      status             = 'submit_unknown',
      known_status       = 'submit_unknown',
      submit_lease_until = null,
      updated_at         = aivedio._clock()
  where attempt.id = p_attempt.id;

  perform aivedio._open_case(
    'submit_unknown', p_attempt.id::text, p_attempt, null,
    pg_catalog.jsonb_build_object('why', p_why, 'client_request_id', p_attempt.client_request_id)
  );
end;
$_lose_submit$;

comment on function aivedio._lose_submit is
  'Stage 20: the outcome of a submission is unknown: mark the attempt and open its case.';
