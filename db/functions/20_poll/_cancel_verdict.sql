/*
 * Stage 20 · poll · _cancel_verdict
 *
 * Whether the provider may be told now that a job is not wanted any more. Some providers' cancel destroys a job that is
 * finished, so their profile names the states in which it may be sent (cancel.only_when), and then only a poll's word
 * of a moment ago counts (cancel.seen_within_s), never a guess:
 *
 *   send       go on
 *   ask        nobody knows how the job stands: poll it first
 *   too_late   it stands where the provider does not cancel
 *
 * Called by   claim_cancels
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._cancel_verdict(
  p_attempt aivedio.task_attempts,
  p_profile jsonb
)
returns text
language plpgsql
stable
set search_path = ''
as $_cancel_verdict$
declare
  v_states constant jsonb := nullif(p_profile #> '{cancel,only_when}', 'null');
  v_within constant interval := pg_catalog.make_interval(
    secs => coalesce((p_profile #>> '{cancel,seen_within_s}')::double precision, 10)
  );
begin
  return case
    when v_states is null then 'send'
    when coalesce(p_attempt.seen_at < aivedio._clock() - v_within, true) then 'ask'
    when v_states ? p_attempt.status then 'send'
    else 'too_late'
  end;
end;
$_cancel_verdict$;

comment on function aivedio._cancel_verdict is
  'Stage 20: whether a cancel may be sent now: send, ask (poll first) or too_late.';
