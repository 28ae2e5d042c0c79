/*
 * Stage 20 · poll · _delay_submit
 *
 * Puts a submission off that surely has not reached the provider, or was turned away at its door. The task stays
 * submitting; this is still its one submission.
 *
 * Called by   settle_submit, holding stream → task → attempt
 * Writes      aivedio.task_attempts, aivedio.reconciliation_cases
 * Locks       the case's row
 */
create or replace function aivedio._delay_submit(
  p_attempt aivedio.task_attempts,
  p_outcome jsonb
)
returns void
language plpgsql
volatile
set search_path = ''
as $_delay_submit$
declare
  v_now  constant timestamptz := aivedio._clock();
  v_wait constant interval := pg_catalog.make_interval(
    secs => least(300, greatest(0, coalesce((p_outcome ->> 'retry_after_s')::double precision, 0)))
  );
begin
  update aivedio.task_attempts as attempt
  set submit_state       = 'due',
      status             = 'submitting',
      known_status       = 'submitting',
      submit_lease_until = null,
      submit_due_at      = v_now + greatest(v_wait, aivedio._backoff(2, 60, attempt.submit_tries - 1)),
      updated_at         = v_now
  where attempt.id = p_attempt.id;

  perform aivedio._resolve_cases(
    'submit_unknown', p_attempt.id::text, 'not_accepted', 'aivedio',
    'the answer came late: the provider did not take it'
  );
end;
$_delay_submit$;

comment on function aivedio._delay_submit is
  'Stage 20: make a submission due again that certainly was not accepted.';
