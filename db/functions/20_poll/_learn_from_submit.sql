/*
 * Stage 20 · poll · _learn_from_submit
 *
 * Lets the credential's circuit learn from the answer to a submission: a provider that accepts or says why not works;
 * one that refuses the credential is left alone at once, one that cannot be understood after several times in a row.
 * What is over its limit is neither, nor is one whose secret we lack: that is ours, and somebody is told.
 *
 * Called by   settle_submit, after cases
 * Writes      aivedio.provider_circuits
 * Locks       the circuit's row
 */
create or replace function aivedio._learn_from_submit(
  p_attempt aivedio.task_attempts,
  p_profile jsonb,
  p_answer  aivedio.submit_answer
)
returns text
language plpgsql
volatile
set search_path = ''
as $_learn_from_submit$
begin
  if p_answer.meaning in ('accepted', 'rejected') then
    perform aivedio._close_circuit(p_attempt.provider, p_attempt.credential);
    return null;
  elsif p_answer.error_class = 'credential_refused' then
    perform aivedio._open_circuit(p_attempt.provider, p_attempt.credential, 'credential_refused');
    return 'credential_refused';
  elsif p_answer.error_class = 'throttled' then
    return null;
  elsif p_answer.error_class = 'not_configured' then
    return 'provider_not_configured';
  elsif aivedio._count_fault(p_attempt.provider, p_attempt.credential, p_profile, 'submit') is not null then
    return 'circuit_open';
  end if;
  return null;
end;
$_learn_from_submit$;

comment on function aivedio._learn_from_submit is
  'Stage 20: close, open or charge a credential''s circuit after the answer to a submission; answers the alarm to raise, or null.';
