/*
 * Stage 30 · observation · _place_problems
 *
 * What is wrong with a list of where to find things: the common fields of a profile, or those of its callbacks.
 *
 * Called by   _field_problems
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._place_problems(
  p_name   text,
  p_fields jsonb
)
returns text[]
language plpgsql
stable
set search_path = ''
as $_place_problems$
declare
  v_known    constant text[] := array[
    'provider_task_id', 'client_request_id', 'status', 'progress', 'progress_scale', 'progress_match', 'sequence',
    'revision', 'occurred_at', 'error_code', 'error_message', 'outputs', 'event_type', 'updated_at'
  ];
  v_problems text[] := '{}'::text[];
  v_place    text;
  v_entry    record;
begin
  for v_entry in
    select field.key, field.value, pg_catalog.jsonb_typeof(field.value) = 'array' as listed
    from pg_catalog.jsonb_each(p_fields) as field
    order by field.key
  loop
    v_place := p_name || '.' || v_entry.key;
    if v_entry.key <> all (v_known) then
      v_problems := v_problems || (v_place || ': no such field');
    elsif v_entry.key = 'occurred_at' and pg_catalog.jsonb_typeof(v_entry.value) not in ('array', 'null') then
      v_problems := v_problems || (v_place || ': a list of paths, the latest moment first');
    elsif v_entry.key = 'progress_match' then
      v_problems := v_problems || aivedio._pattern_problems(v_place, v_entry.value #>> '{}');
    elsif v_entry.key = 'progress_scale'
      or (v_entry.listed and v_entry.key in ('status', 'occurred_at', 'error_code', 'error_message', 'outputs'))
    then
      continue;
    else
      v_problems := v_problems || aivedio._path_problems(v_place, v_entry.value);
    end if;
  end loop;

  for v_entry in
    select pg_catalog.format('%s.%s[%s]', p_name, field.key, path.place - 1) as place, path.value
    from pg_catalog.jsonb_each(p_fields) as field
    cross join lateral pg_catalog.jsonb_path_query(field.value, 'strict $[*]', '{}', true)
      with ordinality as path (value, place)
    where field.key in ('occurred_at', 'error_code', 'error_message')
    union all
    select pg_catalog.format('%s.outputs[%s].path', p_name, rule.place - 1), coalesce(rule.value -> 'path', '0')
    from pg_catalog.jsonb_path_query(p_fields, 'strict $.outputs[*]', '{}', true)
      with ordinality as rule (value, place)
  loop
    v_problems := v_problems || aivedio._path_problems(v_entry.place, v_entry.value);
  end loop;

  for v_entry in
    select pg_catalog.format('%s.status[%s]', p_name, rule.place - 1) as place, rule.value
    from pg_catalog.jsonb_path_query(p_fields, 'strict $.status[*]', '{}', true)
      with ordinality as rule (value, place)
  loop
    v_problems := v_problems || aivedio._predicate_problems(v_entry.place || '.when', v_entry.value -> 'when');
    if coalesce(v_entry.value ->> 'word', '') = '' then
      v_problems := v_problems || (v_entry.place || '.word: the word that words translates');
    end if;
  end loop;

  return v_problems
    || array(
      select pg_catalog.format(
        '%s.outputs[%s].url: {base_url} or https, and {} for what the path finds', p_name, rule.place - 1
      )
      from pg_catalog.jsonb_path_query(p_fields, 'strict $.outputs[*]', '{}', true)
        with ordinality as rule (value, place)
      where pg_catalog.jsonb_typeof(rule.value) = 'object'
        and rule.value ->> 'url' !~ '^(\{base_url\}|https://[A-Za-z0-9.-]+)/[^{}\s]*\{\}[^{}\s]*$'
    )
    || array(
      select pg_catalog.format(
        '%s.outputs: "%s" does not begin with member names, like $.data.url', p_name, path.value #>> '{}'
      )
      from pg_catalog.jsonb_path_query(p_fields, '$.outputs[*]') as rule (value)
      cross join lateral (select coalesce(rule.value -> 'path', rule.value) as value) as path
      where pg_catalog.jsonb_typeof(path.value) = 'string'
        and path.value #>> '{}' !~ '^\$\.\w+'
    );
end;
$_place_problems$;

comment on function aivedio._place_problems is
  'Stage 30: what is wrong with where a profile finds things in a payload.';
