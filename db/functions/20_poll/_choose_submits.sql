/*
 * Stage 20 · poll · _choose_submits
 *
 * The attempts to be submitted now, longest due first. Each credential's are found by themselves: however many wait
 * behind a circuit that is open, they cost the others nothing. A circuit that is due for a probe lets one through. What
 * should be canceled is chosen whatever the circuit says, for it will not be sent.
 *
 * Called by   claim_submits, one session at a time
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._choose_submits(
  p_now   timestamptz,
  p_limit integer
)
returns uuid[]
language sql
stable
set search_path = ''
as $_choose_submits$
  -- The credentials with due attempts, found by skipping through the index.
  with recursive lane (provider, credential) as (
    (
      select attempt.provider, attempt.credential
      from aivedio.task_attempts as attempt
      where attempt.submit_state = 'due'
      order by attempt.provider, attempt.credential
      limit 1
    )
    union all
    select following.provider, following.credential
    from lane
    cross join lateral (
      select attempt.provider, attempt.credential
      from aivedio.task_attempts as attempt
      where attempt.submit_state = 'due'
        and (attempt.provider, attempt.credential) > (lane.provider, lane.credential)
      order by attempt.provider, attempt.credential
      limit 1
    ) as following
  ),
  wanted as (
    select due.id, due.due_at
    from lane
    left join aivedio._circuits(p_now) as circuit
      on circuit.p_provider = lane.provider
      and circuit.p_credential = lane.credential
    cross join lateral (
      select attempt.id, coalesce(attempt.submit_due_at, attempt.created_at) as due_at
      from aivedio.task_attempts as attempt
      where attempt.submit_state = 'due'
        and attempt.provider = lane.provider
        and attempt.credential = lane.credential
        and coalesce(attempt.submit_due_at, attempt.created_at) <= p_now
      order by coalesce(attempt.submit_due_at, attempt.created_at)
      limit case when circuit.p_probe is null then p_limit else circuit.p_probe::integer end
    ) as due
    order by due.due_at
    limit p_limit
  ),
  canceled as (
    select attempt.id
    from aivedio.task_attempts as attempt
    where attempt.cancel_state = 'due'
      and attempt.submit_state = 'due'
    order by attempt.cancel_due_at
    limit p_limit
  )
  select array(select wanted.id from wanted union select canceled.id from canceled);
$_choose_submits$;

comment on function aivedio._choose_submits is
  'Stage 20: the due attempts that may be submitted now, within all circuits, and those that should be canceled instead.';
