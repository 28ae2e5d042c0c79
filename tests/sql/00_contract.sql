-- Stage 00: rules of form that every function of schema aivedio keeps, read from the catalog.
begin;
\ir support/catalog.sql
select no_plan();

-- Names and shape.

select is_empty(
  $$ select name from schema_function where not coalesce(proconfig, '{}') @> array['search_path=""'] $$,
  'every function pins an empty search_path'
);

select is_empty(
  $$ select name from schema_function group by name having count(*) > 1 $$,
  'no function is overloaded'
);

select is_empty(
  $$ select name from schema_function where coalesce(obj_description(oid, 'pg_proc'), '') !~ '^Stage \d0: ' $$,
  'every function has a comment that names its stage'
);

select is_empty(
  $$ select name, arg from schema_function, unnest(proargnames) as arg where arg !~ '^p_' $$,
  'every parameter starts with p_'
);

select is_empty(
  $$
    select name, called.word[1]
    from schema_function
    cross join lateral regexp_matches(words, '(?<![\w.])([a-z]\w*)\s*\(', 'g') as called (word)
    where called.word[1] in (
        select builtin.proname from pg_proc as builtin where builtin.pronamespace = 'pg_catalog'::regnamespace
      )
      -- Aggregates that everybody knows, and words of the grammar.
      and called.word[1] not in ('count', 'min', 'max', 'any', 'row', 'array', 'extract', 'bit')
      -- The columns of a row that is given a name: as path (id, place).
      and words !~ ('\mas ' || called.word[1] || '\s*\(')
  $$,
  'functions of PostgreSQL are called by their full name'
);

select is_empty(
  $$ select name from schema_function where proowner <> 'aivedio_owner'::regrole $$,
  'every function belongs to aivedio_owner'
);

select is_empty(
  $$
    select trigger.tgname
    from pg_trigger as trigger
    join pg_class as relation on relation.oid = trigger.tgrelid
    where relation.relnamespace = 'aivedio'::regnamespace
      and not trigger.tgisinternal
  $$,
  'no trigger carries a rule'
);

-- Time, snapshots, locks.

select set_eq(
  $$
    select name
    from schema_function
    where code ~* '\m(now|clock_timestamp|statement_timestamp|transaction_timestamp|timeofday)\s*\('
      or code ~* '\m(current_timestamp|current_date|current_time|localtimestamp|localtime)\M'
  $$,
  array['_advance_mark', '_clock', '_uuid7'],
  'time comes from _clock; only ids carry the wall clock, and queue marks save writes by it'
);

select is_empty(
  $$
    select name
    from schema_function
    where name in (
        'read_snapshot', 'list_snapshot', 'read_events_after', 'read_events_before', 'streams_moved', 'may_access',
        'normalise', 'next_poll_in', 'read_webhook_profiles', 'pipeline_status', 'why_waiting', 'database_id'
      )
      and provolatile <> 's'
  $$,
  'readers see one snapshot: they are STABLE'
);

select is_empty(
  $$
    select name
    from schema_function
    where provolatile <> 'v'
      and code ~* '\m(insert\s+into|update\s+aivedio|delete\s+from|nextval|setval|pg_notify|for\s+(no\s+key\s+)?update)\M'
  $$,
  'what writes or locks is VOLATILE'
);

select is_empty(
  $$ select name from schema_function where code ~* '\mfor\s+(update|share)\M' $$,
  'row locks are FOR NO KEY UPDATE, which foreign keys do not wait for'
);

select set_eq(
  $$ select name from schema_function where code ~* '\mwhen\s+others\M' $$,
  array['_apply_callbacks'],
  'only the inbox catches every error, to isolate a poison row; it raises again what is not the row''s fault'
);

select finish();
rollback;
