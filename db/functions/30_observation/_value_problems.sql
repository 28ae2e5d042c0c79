/*
 * Stage 30 · observation · _value_problems
 *
 * What is wrong with the values that a profile derives for its requests, and with its names for models.
 *
 * Called by   _profile_problems
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._value_problems(p_profile jsonb)
returns text[]
language plpgsql
stable
set search_path = ''
as $_value_problems$
declare
  v_values   constant jsonb := p_profile -> 'values';
  v_models   constant jsonb := p_profile -> 'models';
  v_problems text[] := '{}'::text[];
  v_rule     record;
begin
  if coalesce(pg_catalog.jsonb_typeof(v_models), 'object') <> 'object'
    or v_models @? '$.* ? (@.type() != "string")'
  then
    v_problems := v_problems || 'models: an object of our name and the provider''s'::text;
  end if;
  if coalesce(pg_catalog.jsonb_typeof(v_values), 'object') <> 'object' then
    return v_problems || 'values: an object of name and {from, match, default}'::text;
  end if;

  for v_rule in
    select rule.key, rule.value from pg_catalog.jsonb_each(v_values) as rule order by rule.key
  loop
    if v_rule.key !~ '^[a-z_]{1,40}$'
      or v_rule.key in ('model', 'client_request_id', 'callback_url', 'provider_task_id', 'input', 'answer')
    then
      v_problems := v_problems || pg_catalog.format('values.%s: a new name of letters and underscores', v_rule.key);
    end if;
    if coalesce(v_rule.value ->> 'from', '') !~ '^(model|provider_task_id|client_request_id|input(\.\w+)+)$' then
      v_problems := v_problems
        || pg_catalog.format('values.%s.from: model, provider_task_id, client_request_id or input.NAME', v_rule.key);
    end if;
    v_problems := v_problems
      || aivedio._pattern_problems('values.' || v_rule.key || '.match', v_rule.value ->> 'match');
    if coalesce(pg_catalog.jsonb_typeof(v_rule.value -> 'default'), 'string') <> 'string' then
      v_problems := v_problems || pg_catalog.format('values.%s.default: text', v_rule.key);
    end if;
  end loop;

  return v_problems;
end;
$_value_problems$;

comment on function aivedio._value_problems is
  'Stage 30: what is wrong with the values that a profile derives, and with its names for models.';
