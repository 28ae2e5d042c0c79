/*
 * Stage 20 · poll · _sparse_factor
 *
 * How many times longer than the profile says an attempt's polls may wait, because its provider calls back: from 1,
 * where callbacks tell too few of the ends, to poll_sparse_factor, where they tell all. What was not measured lately,
 * and an attempt that asked for no callbacks, is polled as the profile says.
 *
 * Called by   _accept_submit, _reschedule_poll
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._sparse_factor(p_attempt aivedio.task_attempts)
returns double precision
language plpgsql
stable
set search_path = ''
as $_sparse_factor$
declare
  v_coverage double precision;
  v_low      double precision;
begin
  if p_attempt.callback_token_hash is null then
    return 1;
  end if;

  select known.coverage
  into v_coverage
  from aivedio.callback_coverage as known
  where known.provider = p_attempt.provider
    and known.measured_at > aivedio._clock() - interval '10 minutes';

  if not found then
    return 1;
  end if;

  v_low := aivedio._setting('callback_coverage_low');
  return 1 + greatest(0, aivedio._setting('poll_sparse_factor')::double precision - 1)
    * greatest(0, coalesce((v_coverage - v_low) / nullif(1 - v_low, 0), 0));
end;
$_sparse_factor$;

comment on function aivedio._sparse_factor is
  'Stage 20: how many times longer an attempt''s polls wait where callbacks do their work.';
