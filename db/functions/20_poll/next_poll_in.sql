/*
 * Stage 20 · poll · next_poll_in
 *
 * How long the poll edge may rest: until the next poll is due that nobody has leased. At least 50 ms, for a poll that
 * is due and was not handed out waits for a token or a circuit. Null when nothing is scheduled.
 *
 * Called by   edge/intake/poll.py, as aivedio_poll
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio.next_poll_in()
returns interval
language plpgsql
stable
security definer  -- aivedio_poll may know when it is needed without reading the schedule
set search_path = ''
as $next_poll_in$
declare
  v_next timestamptz;
begin
  select min(earliest.due_at)
  into v_next
  from aivedio._poll_lanes() as lane
  cross join lateral (
    select greatest(attempt.next_poll_at, attempt.poll_lease_until) as due_at
    from aivedio.task_attempts as attempt
    where attempt.tenant_id = lane.p_tenant
      and attempt.provider = lane.p_provider
      and attempt.model = lane.p_model
      and attempt.next_poll_at is not null
      and attempt.provider_task_id is not null
      and aivedio._if_polled(attempt.provider, attempt.next_poll_at) is not null
    order by attempt.next_poll_at
    limit 20
  ) as earliest;

  if v_next is null then
    return null;
  end if;
  return greatest(interval '50 milliseconds', v_next - aivedio._clock());
end;
$next_poll_in$;

comment on function aivedio.next_poll_in is
  'Stage 20: the time until the next poll is due, at least 50 ms; null when none is scheduled.';

grant execute on function aivedio.next_poll_in to aivedio_poll;
