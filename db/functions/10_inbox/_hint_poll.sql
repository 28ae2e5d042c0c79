/*
 * Stage 10 · inbox · _hint_poll
 *
 * Makes an attempt's next poll due, because somebody hinted that there is news. However many hint, an attempt
 * is polled for it at most once per hint_interval_s. An attempt without a provider's task id cannot be polled,
 * one that is over need not be; that somebody called back is noted all the same.
 *
 * Called by   _process_callback
 * Writes      aivedio.task_attempts
 * Locks       nothing: the caller holds the attempt
 */
create or replace function aivedio._hint_poll(p_attempt uuid)
returns boolean
language plpgsql
volatile
set search_path = ''
as $_hint_poll$
declare
  v_now  constant timestamptz := aivedio._clock();
  v_rest constant interval := pg_catalog.make_interval(secs => aivedio._setting('hint_interval_s')::double precision);
begin
  update aivedio.task_attempts as attempt
  set last_callback_at = v_now
  where attempt.id = p_attempt;

  update aivedio.task_attempts as attempt
  set next_poll_at = least(
        attempt.next_poll_at,
        aivedio._if_polled(
          attempt.provider, greatest(v_now, attempt.hinted_at + v_rest, attempt.last_polled_at + v_rest)
        )
      ),
      hinted_at    = greatest(v_now, attempt.hinted_at + v_rest),
      updated_at   = v_now
  where attempt.id = p_attempt
    and attempt.provider_task_id is not null
    and attempt.terminal_at is null
    and (attempt.hinted_at is null or attempt.hinted_at <= v_now);

  return found;
end;
$_hint_poll$;

comment on function aivedio._hint_poll is
  'Stage 10: make an attempt''s poll due now, within its rate; true when it did.';
