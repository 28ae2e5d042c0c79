/*
 * Stage 50 · events · _after_restore
 *
 * Makes every cursor that was handed out before a restore unusable, by moving the event ids to a fresh
 * range of partitions, far above anything that can have been drawn. Partitions for the new range are made in the same
 * transaction, or every write would stop. Readers then get reset and take a snapshot. The other
 * sequences move too, so that ids in logs and on the bus stay unique.
 *
 * Called by   _check_lineage, after_restore
 * Writes      the three sequences, their partitions, aivedio.server_identity, aivedio.queue_marks, aivedio.alarms
 * Locks       an advisory lock until commit: the first writer moves the ids, the others wait and see it done
 */
create or replace function aivedio._after_restore(p_reason text)
returns bigint
language plpgsql
volatile
set search_path = ''
as $_after_restore$
declare
  v_size   constant bigint := aivedio._setting('partition_ids');
  v_system constant bigint := (select system.system_identifier from pg_catalog.pg_control_system() as system);
  v_target bigint;
  v_kind   record;
begin
  perform pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtext('aivedio_after_restore'), 0);

  perform 1
  from aivedio.server_identity as identity
  where identity.system_identifier = v_system
    and identity.timeline = aivedio._timeline();
  if found and p_reason = 'lineage' then
    return null;
  end if;

  for v_kind in
    select kind.*
    from (values ('task_events'), ('outbox_events'), ('observations')) as parent (name)
    cross join lateral aivedio._partitioned(parent.name) as kind
  loop
    -- Ten ranges: no server has drawn so many ids since its last backup.
    v_target := (pg_catalog.nextval(v_kind.sequence::regclass) / v_size + 10) * v_size;
    for v_ahead in 0 .. aivedio._setting('partitions_ahead')::integer loop
      perform aivedio._create_partition(v_kind.parent, v_target + v_ahead * v_size);
    end loop;
    -- Survives a rollback, as the partitions do not: then the lineage still differs and the next writer comes
    -- here again, or upkeep makes the partition that the sequence stands in.
    perform pg_catalog.setval(v_kind.sequence::regclass, v_target + 1, false);
  end loop;

  update aivedio.server_identity as identity
  set system_identifier = v_system,
      timeline          = aivedio._timeline(),
      since             = aivedio._clock();

  -- What the bus has of the last minutes is unknown: look at every unpublished row again.
  update aivedio.queue_marks as mark
  set low  = 0,
      high = null;

  perform aivedio._raise_alarm(
    'restored', 'database', pg_catalog.jsonb_build_object('reason', p_reason, 'first_event_id', v_target)
  );
  return v_target;
end;
$_after_restore$;

comment on function aivedio._after_restore is
  'Stage 50: move all ids far ahead after a restore, with partitions for them; answers the last range''s start, null when another session did it.';
