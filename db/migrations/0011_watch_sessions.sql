-- migrate:up
-- 0011  The owner may see since when sessions of other roles hold a snapshot: upkeep alarms of old ones, and without
--       this PostgreSQL shows it nothing but their names.
--
-- The grant belongs to the cluster, as roles do: another database may be making it at this moment. Where whoever
-- migrates may not make it, everything else works, and a DBA can make it later.
do $watch$
begin
  for v_try in 1..10 loop
    exit when pg_catalog.pg_has_role('aivedio_owner', 'pg_read_all_stats', 'usage');
    begin
      grant pg_read_all_stats to aivedio_owner;
    exception
      when internal_error or unique_violation then  -- "tuple concurrently updated"
        perform pg_catalog.pg_sleep(0.05);
      when insufficient_privilege or invalid_grant_operation then
        raise notice 'Old snapshots will not be alarmed. A superuser may run: grant pg_read_all_stats to aivedio_owner';
        exit;
    end;
  end loop;
end;
$watch$;

-- migrate:down
-- Forward only: a later migration corrects an earlier one.
