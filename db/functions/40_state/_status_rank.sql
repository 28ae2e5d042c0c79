/*
 * Stage 40 · state · _status_rank
 *
 * How far a job is on its way to the provider's result. Used where a status must never go back.
 *
 * Called by   _judge, _update_attempt
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._status_rank(p_status text)
returns integer
language plpgsql
immutable
set search_path = ''
as $_status_rank$
begin
  return pg_catalog.array_position(
    array['created', 'submitting', 'submit_unknown', 'submitted', 'queued', 'running'], p_status
  );
end;
$_status_rank$;

comment on function aivedio._status_rank is
  'Stage 40: the place of a status before the provider''s result, 1 for created to 6 for running; null for others.';
