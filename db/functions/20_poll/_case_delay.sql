/*
 * Stage 20 · poll · _case_delay
 *
 * A terminal attempt is never due, with one exception: while a conflict about it is open, the provider is asked
 * again now and then, for a week at most, and its answers are evidence.
 *
 * Called by   _reschedule_poll
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._case_delay(p_attempt aivedio.task_attempts)
returns interval
language sql
volatile
set search_path = ''
as $_case_delay$
  select aivedio._backoff(1800, 21600, p_attempt.poll_count)
  from aivedio.reconciliation_cases as known
  where known.kind = 'conflict'
    and known.attempt_id = p_attempt.id
    and known.state = 'open'
    and known.opened_at > aivedio._clock() - interval '7 days';
$_case_delay$;

comment on function aivedio._case_delay is
  'Stage 20: the wait before a terminal attempt with an open conflict is looked at again, else null.';
