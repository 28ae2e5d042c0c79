/*
 * Stage 40 · state · _deadline
 *
 * How long an attempt may take before somebody is told.
 *
 * Called by   _insert_attempt, resolve_case
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._deadline(p_profile jsonb)
returns interval
language plpgsql
immutable
set search_path = ''
as $_deadline$
begin
  return pg_catalog.make_interval(secs => coalesce((p_profile ->> 'deadline_s')::double precision, 3600));
end;
$_deadline$;

comment on function aivedio._deadline is
  'Stage 40: the time that a provider''s jobs have, an hour where its profile says nothing.';
