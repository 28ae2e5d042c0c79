/*
 * Stage 10 · inbox · _is_passing
 *
 * Whether an error says nothing about the row that met it: deadlock, serialisation, lock timeout, a missing
 * partition, a full disk, a server that shuts down. Such an error is raised again, and the batch is
 * tried later; any other condemns the row.
 *
 * Called by   _apply_callbacks
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._is_passing(
  p_sqlstate   text,
  p_constraint text
)
returns boolean
language plpgsql
immutable
set search_path = ''
as $_is_passing$
begin
  return p_sqlstate in ('40P01', '40001', '55P03', '25006')
    or pg_catalog.left(p_sqlstate, 2) in ('08', '53', '57', '58')
    -- "No partition for this row" shares its code with check constraints, but names none.
    or (p_sqlstate = '23514' and coalesce(p_constraint, '') = '');
end;
$_is_passing$;

comment on function aivedio._is_passing is
  'Stage 10: true for errors of the server, false for errors of the row.';
