/*
 * Stage 30 · observation · _rule_problems
 *
 * What is wrong with how a profile translates: words to statuses, errors to public codes, successes that are none.
 *
 * Called by   _profile_problems
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._rule_problems(p_profile jsonb)
returns text[]
language plpgsql
stable
set search_path = ''
as $_rule_problems$
declare
  v_statuses constant text[] := array['queued', 'running', 'succeeded', 'failed', 'canceled'];
  v_codes    constant text[] := array[
    'provider_rejected', 'content_refused', 'provider_failed', 'provider_busy', 'provider_unreachable', 'timed_out',
    'canceled_by_provider', 'unknown'
  ];
  v_words    constant jsonb := p_profile -> 'words';
  v_problems text[] := '{}'::text[];
  v_source   text;
  v_rule     record;
begin
  if pg_catalog.jsonb_typeof(v_words) is distinct from 'object' then
    return array['words: an object of webhook and poll'];
  end if;

  foreach v_source in array array['webhook', 'poll'] loop
    if pg_catalog.jsonb_typeof(p_profile -> v_source) = 'object'
      and pg_catalog.jsonb_typeof(v_words -> v_source) is distinct from 'object'
    then
      v_problems := v_problems || pg_catalog.format('words.%s: an object of word and status', v_source);
    end if;
  end loop;

  v_problems := v_problems || array(
    select pg_catalog.format('words.%s: no such source', source.key)
    from pg_catalog.jsonb_each(v_words) as source
    where source.key not in ('webhook', 'poll', 'reconcile')
    order by source.key
  );
  v_problems := v_problems || array(
    select pg_catalog.format('words.%s.%s: one of %s', source.key, word.key, v_statuses)
    from pg_catalog.jsonb_each(v_words) as source
    cross join lateral pg_catalog.jsonb_each(
      case pg_catalog.jsonb_typeof(source.value) when 'object' then source.value else '{}' end
    ) as word
    where pg_catalog.jsonb_typeof(word.value) <> 'string'
      or word.value #>> '{}' <> all (v_statuses)
    order by source.key, word.key
  );

  for v_rule in
    select pg_catalog.format('errors[%s]', rule.place - 1) as place, rule.value
    from pg_catalog.jsonb_path_query(p_profile, '$.errors[*]') with ordinality as rule (value, place)
  loop
    v_problems := v_problems || aivedio._pattern_problems(v_rule.place || '.match', v_rule.value ->> 'match');
    if coalesce(v_rule.value ->> 'class', '') !~ '^[a-z][a-z0-9_]{0,62}$' then
      v_problems := v_problems || (v_rule.place || '.class: lower-case letters, digits and underscores');
    end if;
    if coalesce(v_rule.value ->> 'code', '') <> all (v_codes) then
      v_problems := v_problems || pg_catalog.format('%s.code: one of %s', v_rule.place, v_codes);
    end if;
  end loop;

  for v_rule in
    select pg_catalog.format('hidden_failures[%s]', rule.place - 1) as place, rule.value
    from pg_catalog.jsonb_path_query(p_profile, '$.hidden_failures[*]') with ordinality as rule (value, place)
  loop
    v_problems := v_problems || aivedio._predicate_problems(v_rule.place || '.when', v_rule.value -> 'when');
    if coalesce(v_rule.value ->> 'status', 'failed') not in ('failed', 'canceled') then
      v_problems := v_problems || (v_rule.place || '.status: failed or canceled');
    end if;
    if coalesce(v_rule.value ->> 'code', 'provider_failed') <> all (v_codes) then
      v_problems := v_problems || pg_catalog.format('%s.code: one of %s', v_rule.place, v_codes);
    end if;
  end loop;

  return v_problems;
end;
$_rule_problems$;

comment on function aivedio._rule_problems is
  'Stage 30: what is wrong with a profile''s words, errors and hidden failures.';
