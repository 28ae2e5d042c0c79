/*
 * Stage 90 · operate · checkup
 *
 * What can be told from inside the database about whether this installation is sound: the server's settings that
 * promises rest on, roles, partitions, leases and retention against what providers take, and whether upkeep runs.
 *
 * Called by   edge/operate/doctor.py; DBAs
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio.checkup()
returns setof aivedio.checked_item
language plpgsql
stable
security definer  -- operators look at settings, roles and profiles without reading their tables
set search_path = ''
as $checkup$
begin
  return query
  select
    'server setting ' || wanted.name,
    case when setting.setting = any (wanted.good) then 'ok' else wanted.otherwise end,
    setting.setting,
    case when setting.setting <> all (wanted.good) then wanted.advice end
  from (values
    ('fsync', array['on'], 'wrong', 'Turn it on: without it a crash loses callbacks that were answered with success.'),
    ('full_page_writes', array['on'], 'wrong', 'Turn it on, unless the file system never tears a page.'),
    ('synchronous_commit', array['on', 'remote_write', 'remote_apply', 'local'], 'wrong',
      'Set it to on: off loses callbacks that were answered with success.'),
    ('autovacuum', array['on'], 'wrong', 'Turn it on: queues and hot rows live from it.'),
    ('default_transaction_isolation', array['read committed'], 'wrong',
      'Set it to read committed: the functions lock and look again, which a fixed snapshot forbids.'),
    ('archive_mode', array['on', 'always'], 'warn',
      'Archive the write-ahead log, or a backup restores to its own moment only.')
  ) as wanted (name, good, otherwise, advice)
  join pg_catalog.pg_settings as setting on setting.name = wanted.name;

  return query
  select
    'role ' || wanted.name,
    case
      when role.oid is null then 'wrong'
      when role.rolsuper then 'wrong'
      when wanted.name <> 'aivedio_owner' and not pg_catalog.pg_has_role(session_user, role.oid, 'member') then 'warn'
      else 'ok'
    end,
    case
      when role.oid is null then 'missing'
      when role.rolsuper then 'a superuser'
      when pg_catalog.pg_has_role(session_user, role.oid, 'member') then session_user || ' may act as it'
      else session_user || ' may not act as it'
    end,
    case
      when role.oid is null then 'Run aivedio migrate.'
      when role.rolsuper then pg_catalog.format('alter role %s nosuperuser', wanted.name)
      when wanted.name <> 'aivedio_owner' and not pg_catalog.pg_has_role(session_user, role.oid, 'member') then
        pg_catalog.format('grant %s to %I, or start the processes that need it as who may.', wanted.name, session_user)
    end
  from pg_catalog.unnest(array[
    'aivedio_owner', 'aivedio_webhook', 'aivedio_inbox', 'aivedio_poll', 'aivedio_submit', 'aivedio_relay',
    'aivedio_consumer', 'aivedio_gateway', 'aivedio_app', 'aivedio_operator'
  ]) as wanted (name)
  left join pg_catalog.pg_roles as role on role.rolname = wanted.name;

  return query
  select
    'partitions of ' || parent.name,
    case when ahead.count < 2 then 'wrong' else 'ok' end,
    pg_catalog.format('%s ahead', ahead.count),
    case when ahead.count < 2 then
      pg_catalog.format('Run aivedio upkeep, or select aivedio.create_partition(%L) a few times.', parent.name)
    end
  from (values ('task_events'), ('outbox_events'), ('observations')) as parent (name)
  cross join lateral (
    select count(*) as count
    from aivedio._partitions(parent.name) as range
    where range.low > aivedio._last_id(parent.name)
  ) as ahead;

  return query
  select
    'upkeep',
    case when checks.at < aivedio._clock() - interval '10 minutes' then 'wrong' else 'ok' end,
    pg_catalog.format('last round %s', pg_catalog.date_trunc('second', checks.at)),
    case when checks.at < aivedio._clock() - interval '10 minutes' then
      'Run aivedio upkeep, or its steps by pg_cron: without it partitions run out and old rows stay.'
    end
  from aivedio.stream_checks as checks;

  return query
  select
    pg_catalog.format('lease of a %s to %s', request.kind, provider.name),
    'wrong',
    pg_catalog.format('%s s for work of up to %s s', request.lease, request.work),
    pg_catalog.format('Raise the setting %s, or lower the profile''s %s.timeout_s.', request.setting, request.kind)
  from aivedio.providers as provider
  cross join lateral (
    select kinds.kind, kinds.setting, aivedio._setting(kinds.setting) as lease,
      1.5 * (provider.effective #>> array[kinds.kind, 'timeout_s'])::numeric as work
    from (values
      ('submit', 'submit_lease_s'), ('poll', 'poll_lease_s'), ('cancel', 'cancel_lease_s')
    ) as kinds (kind, setting)
  ) as request
  where request.work > request.lease
  order by 1;

  return query
  select
    'retention of callbacks of ' || provider.name,
    'warn',
    pg_catalog.format(
      'payloads %s days, retries for %s s',
      aivedio._setting('retention_days_payload'), provider.effective ->> 'retry_span_s'
    ),
    'Raise retention_days_payload above the span, to be able to look at what a repeat repeated.'
  from aivedio.providers as provider
  where (provider.effective ->> 'retry_span_s')::numeric > 86400 * aivedio._setting('retention_days_payload')
  order by 1;

  return query
  select
    'alarm ' || alarm.kind,
    'warn',
    pg_catalog.format(
      '%s: %s times since %s', alarm.subject, alarm.count, pg_catalog.date_trunc('second', alarm.first_at)
    ),
    pg_catalog.format('Look at what it says; then aivedio.resolve_alarm(%L, %L, who, why).', alarm.kind, alarm.subject)
  from aivedio.alarms as alarm
  where alarm.resolved_at is null
  order by alarm.last_at desc
  limit 50;
end;
$checkup$;

comment on function aivedio.checkup is
  'Stage 90: what is sound and what is not in this database, each with what to do about it.';

grant execute on function aivedio.checkup to aivedio_operator;
