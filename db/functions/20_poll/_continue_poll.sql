/*
 * Stage 20 · poll · _continue_poll
 *
 * A poll is half done: its first answer is kept, and the profile's second request is due at once. That request is
 * claimed, leased and paid for like any other poll, so a worker that dies between the two loses nothing.
 *
 * Called by   settle_poll, holding stream → task → attempt
 * Writes      aivedio.task_attempts; what _note_success writes
 * Locks       circuit → quota
 */
create or replace function aivedio._continue_poll(
  p_attempt aivedio.task_attempts,
  p_answer  jsonb
)
returns aivedio.applied
language plpgsql
volatile
set search_path = ''
as $_continue_poll$
declare
  v_now constant timestamptz := aivedio._clock();
begin
  perform aivedio._note_success(p_attempt.provider, p_attempt.credential);

  update aivedio.task_attempts as attempt
  set poll_lease_until = null,
      leased_by        = null,
      last_polled_at   = v_now,
      poll_count       = attempt.poll_count + 1,
      poll_answer      = p_answer,
      next_poll_at     = v_now,
      updated_at       = v_now
  where attempt.id = p_attempt.id;

  perform aivedio._ring('aivedio_poll');
  return aivedio._settled('duplicate', p_attempt.id);
end;
$_continue_poll$;

comment on function aivedio._continue_poll is
  'Stage 20: keep the first answer of a poll and make its second request due.';
