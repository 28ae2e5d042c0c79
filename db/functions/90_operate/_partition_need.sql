/*
 * Stage 90 · operate · _partition_need
 *
 * Why a partition past its retention must stay, or null. Events are needed by nobody: the chain tells readers
 * that come with an older cursor, and messages carry their event whole.
 *
 * Called by   drop_partition
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._partition_need(
  p_parent    text,
  p_partition text
)
returns text
language plpgsql
stable
set search_path = ''
as $_partition_need$
declare
  v_need text;
begin
  if p_parent = 'outbox_events' then
    execute pg_catalog.format(
      $query$
        select 'message ' || owed.id || ' is ' || owed.publish_status
        from aivedio.%I as owed
        where owed.publish_status in ('pending', 'parked')
        limit 1
      $query$,
      p_partition
    )
    into v_need;
  elsif p_parent = 'observations' then
    execute pg_catalog.format(
      $query$
        select 'case ' || evidence.id || ' is open'
        from aivedio.reconciliation_cases as evidence
        where evidence.state = 'open'
          and exists (
            select from aivedio.%I as observation where observation.task_id = evidence.task_id
          )
        limit 1
      $query$,
      p_partition
    )
    into v_need;
  end if;

  return v_need;
end;
$_partition_need$;

comment on function aivedio._partition_need is
  'Stage 90: what still needs a partition that is past its retention, in words; null when nothing does.';
