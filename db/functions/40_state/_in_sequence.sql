/*
 * Stage 40 · state · _in_sequence
 *
 * Whether an observation is in order by the provider's own count, where it has one: the count rises, or it stands
 * still and the provider says of the job what it said before. The second happens all the time: polls see a state that a
 * callback has brought, and polls that work again see the state that was known before they failed.
 *
 * Called by   _judge, _update_attempt
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._in_sequence(
  p_attempt     aivedio.task_attempts,
  p_observation aivedio.provider_observation
)
returns boolean
language plpgsql
immutable
set search_path = ''
as $_in_sequence$
begin
  return p_observation.provider_sequence is null
    or p_attempt.last_provider_seq is null
    or p_observation.provider_sequence > p_attempt.last_provider_seq
    or (
      p_observation.provider_sequence = p_attempt.last_provider_seq
      and coalesce(p_observation.normalized_status = p_attempt.known_status, false)
    );
end;
$_in_sequence$;

comment on function aivedio._in_sequence is
  'Stage 40: false for an observation that the provider''s own count calls overtaken.';
