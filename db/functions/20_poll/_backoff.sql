/*
 * Stage 20 · poll · _backoff
 *
 * min(cap, base · 2^n), give or take a fifth: the wait before the next try of anything that failed n times.
 *
 * Called by   _case_delay, _delay_submit, _open_circuit, _poll_delay, _reschedule_poll, _throttle, claim_cancels,
 *             settle_cancel
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._backoff(
  p_base_s double precision,
  p_cap_s  double precision,
  p_tries  integer
)
returns interval
language plpgsql
volatile
set search_path = ''
as $_backoff$
begin
  return pg_catalog.make_interval(
    secs => least(p_cap_s, p_base_s * 2.0 ^ least(greatest(p_tries, 0), 30)) * (0.8 + 0.4 * pg_catalog.random())
  );
end;
$_backoff$;

comment on function aivedio._backoff is
  'Stage 20: min(cap, base · 2^tries) with a jitter of a fifth, as an interval.';
