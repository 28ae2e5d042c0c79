/*
 * Stage 90 · operate · after_restore
 *
 * Call it once after a database was put back from a snapshot of its disks. Such a copy looks like the
 * server that wrote it, so nothing notices by itself. After a restore from a backup with its log, the first
 * writer does this alone.
 *
 * Called by   operators
 * Writes      what _after_restore writes, aivedio.operator_actions
 * Locks       an advisory lock until commit
 */
create or replace function aivedio.after_restore(
  p_who text,
  p_why text
)
returns bigint
language plpgsql
volatile
security definer  -- operators move the ids without owning the sequences
set search_path = ''
as $after_restore$
declare
  v_first constant bigint := aivedio._after_restore(p_why);
begin
  perform aivedio._audit(p_who, 'after_restore', 'database', p_why);
  return v_first;
end;
$after_restore$;

comment on function aivedio.after_restore is
  'Stage 90: make every cursor from before a restore invalid, so that browsers take a snapshot; answers the start of the new id range.';

grant execute on function aivedio.after_restore to aivedio_operator;
