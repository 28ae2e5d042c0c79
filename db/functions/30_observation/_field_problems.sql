/*
 * Stage 30 · observation · _field_problems
 *
 * What is wrong with where a profile finds things in a payload: paths that do not compile, functions that do not
 * exist or may write, redactions that lead nowhere.
 *
 * A function that a profile names runs with the rights of the schema's owner, so it must be the owner's own.
 *
 * Called by   _profile_problems
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._field_problems(p_profile jsonb)
returns text[]
language plpgsql
stable
set search_path = ''
as $_field_problems$
declare
  v_fields   constant jsonb := p_profile -> 'fields';
  v_callback constant jsonb := p_profile #> '{webhook,fields}';
  v_problems text[] := '{}'::text[];
  v_entry    record;
begin
  if pg_catalog.jsonb_typeof(v_fields) is distinct from 'object' then
    return array['fields: an object'];
  end if;

  v_problems := array(
    select pg_catalog.format('fields.%s: missing', field.name)
    from (values ('provider_task_id'), ('status')) as field (name)
    where coalesce(v_fields -> field.name, 'null') = 'null'
  ) || aivedio._place_problems('fields', v_fields);
  if pg_catalog.jsonb_typeof(v_callback) = 'object' then
    v_problems := v_problems || aivedio._place_problems('webhook.fields', v_callback);
  elsif pg_catalog.jsonb_typeof(v_callback) <> 'null' then
    v_problems := v_problems || 'webhook.fields: an object, over the common fields'::text;
  end if;

  for v_entry in
    select pg_catalog.format('webhook.required[%s]', path.place - 1) as place, path.value
    from pg_catalog.jsonb_path_query(p_profile, '$.webhook.required[*]') with ordinality as path (value, place)
    union all
    select 'webhook.event_id', p_profile #> '{webhook,event_id}'
    union all
    select 'submit.' || name.value, path.value
    from (values ('error_message'), ('error_code')) as name (value)
    cross join lateral pg_catalog.jsonb_path_query(p_profile #> array['submit', name.value], '$[*]') as path (value)
  loop
    v_problems := v_problems || aivedio._path_problems(v_entry.place, v_entry.value);
  end loop;

  v_problems := v_problems || array(
    select pg_catalog.format('%s: "%s" does not begin with member names, like $.data.url', path.list, path.value)
    from (
      select 'redact' as list, entry.value
      from pg_catalog.jsonb_path_query(p_profile, '$.redact[*]') as entry (value)
      union all
      select 'redact_after', entry.value
      from pg_catalog.jsonb_path_query(p_profile, '$.redact_after[*]') as entry (value)
    ) as path
    where path.value #>> '{}' !~ '^\$\.\w+'
  );

  for v_entry in
    select function.key, pg_catalog.to_regproc(function.value) as oid
    from pg_catalog.jsonb_each_text(
      case pg_catalog.jsonb_typeof(p_profile -> 'functions') when 'object' then p_profile -> 'functions' else '{}' end
    ) as function
  loop
    if v_entry.key <> 'progress' then
      v_problems := v_problems || pg_catalog.format('functions.%s: only progress may be a function', v_entry.key);
    elsif not exists (
      select 1
      from pg_catalog.pg_proc as function
      where function.oid = v_entry.oid
        and function.provolatile in ('i', 's')
        and function.prorettype = 'numeric'::regtype
        and function.proargtypes::text = ('jsonb'::regtype)::oid::text
        and function.proowner = (current_user::regrole)::oid
    ) then
      v_problems := v_problems
        || 'functions.progress: a STABLE or IMMUTABLE function of aivedio_owner, (jsonb) returns numeric'::text;
    end if;
  end loop;

  return v_problems;
end;
$_field_problems$;

comment on function aivedio._field_problems is
  'Stage 30: what is wrong with a profile''s paths, redactions and functions.';
