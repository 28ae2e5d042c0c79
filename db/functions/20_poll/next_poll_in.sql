/*
 * Stage 20 · poll · next_poll_in
 *
 * How long the poll edge may rest: until the next poll is due that nobody has leased, or a lease may run out. At least
 * 50 ms, for a poll that is due and was not handed out waits for a token or a circuit. Null when nothing is scheduled.
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
  v_now  constant timestamptz := aivedio._clock();
  v_next timestamptz;
begin
  select least(
    (
      select attempt.next_poll_at
      from aivedio.task_attempts as attempt
      where attempt.next_poll_at is not null
        and attempt.provider_task_id is not null
        and (attempt.poll_lease_until is null or attempt.poll_lease_until <= v_now)
        and attempt.provider in (
          select provider.name
          from aivedio.providers as provider
          where pg_catalog.jsonb_typeof(provider.effective -> 'poll') = 'object'
        )
      order by attempt.next_poll_at
      limit 1
    ),
    (
      select min(leased.poll_lease_until)
      from (
        select attempt.poll_lease_until
        from aivedio.task_attempts as attempt
        where attempt.next_poll_at <= v_now
        order by attempt.next_poll_at
        limit 200
      ) as leased
      where leased.poll_lease_until > v_now
    )
  )
  into v_next;

  if v_next is null then
    return null;
  end if;
  return greatest(interval '50 milliseconds', v_next - v_now);
end;
$next_poll_in$;

comment on function aivedio.next_poll_in is
  'Stage 20: the time until the next poll is due, at least 50 ms; null when none is scheduled.';

grant execute on function aivedio.next_poll_in to aivedio_poll;
