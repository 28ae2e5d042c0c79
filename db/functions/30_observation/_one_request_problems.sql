/*
 * Stage 30 · observation · _one_request_problems
 *
 * What is wrong with one request of a profile: its method, path, query and headers, the placeholders in it, and its
 * rules about answers.
 *
 * Called by   _request_problems
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._one_request_problems(
  p_name    text,
  p_rule    jsonb,
  p_profile jsonb
)
returns text[]
language plpgsql
stable
set search_path = ''
as $_one_request_problems$
declare
  v_meanings constant text[] := array[
    'body', 'failed', 'canceled', 'not_found', 'auth', 'throttled', 'retry', 'refused'
  ];
  v_common   constant text[] := array[
    'method', 'path', 'query', 'headers', 'body', 'timeout_s', 'max_bytes', 'http', 'answers'
  ];
  v_known    constant text[] := v_common || case p_name
    when 'submit' then array['accepted', 'provider_task_id', 'error_message', 'error_code']
    when 'poll' then array[
      'interval_s', 'cap_s', 'overdue_s', 'not_found_grace_s', 'throttle_base_s', 'circuit_faults', 'then',
      'gone_after_cancel'
    ]
    when 'poll.then' then array['when', 'into']
    else array['confirmed', 'only_when', 'seen_within_s']
  end;
  -- Placeholders stand in these alone; rules and paths have braces of their own.
  v_template constant text := pg_catalog.jsonb_build_array(
    p_rule -> 'path', p_rule -> 'query', p_rule -> 'headers', p_rule -> 'body'
  )::text;
  v_problems text[] := array(
    select pg_catalog.format('%s.%s: no such key', p_name, key.name)
    from pg_catalog.jsonb_object_keys(p_rule) as key (name)
    where key.name <> all (v_known)
    order by key.name
  );
  v_rule     record;
begin
  if coalesce(p_rule ->> 'method', '') not in ('GET', 'POST', 'PUT', 'PATCH', 'DELETE') then
    v_problems := v_problems || pg_catalog.format('%s.method: GET, POST, PUT, PATCH or DELETE', p_name);
  end if;
  if coalesce(p_rule ->> 'path', '') !~ '^/[^\s#?]*$' or p_rule ->> 'path' like '//%' then
    v_problems := v_problems
      || pg_catalog.format('%s.path: a path that begins with one slash, without a query', p_name);
  end if;
  if p_name <> 'submit' and v_template !~ '\{\+?(provider_task_id|answer\.)' then
    v_problems := v_problems || pg_catalog.format('%s: {provider_task_id} stands nowhere', p_name);
  end if;

  v_problems := v_problems || array(
    select pg_catalog.format('%s: there is no placeholder {%s}', p_name, found.name[1])
    from pg_catalog.regexp_matches(v_template, '\{(\+?[a-z_]+(?:\.\w+)*)\}', 'g') as found (name)
    cross join lateral (select pg_catalog.ltrim(found.name[1], '+') as bare) as placeholder
    where placeholder.bare !~ '^(model|client_request_id|callback_url|provider_task_id|input(\.\w+)*)$'
      and not coalesce((p_profile -> 'values') ? placeholder.bare, false)
      and not (p_name = 'poll.then' and placeholder.bare ~ '^answer(\.\w+)+$')
  );
  v_problems := v_problems || array(
    select pg_catalog.format('%s.%s.%s: name and value are plain text', p_name, part.name, entry.key)
    from (values ('headers'), ('query')) as part (name)
    cross join lateral pg_catalog.jsonb_each(
      case pg_catalog.jsonb_typeof(p_rule -> part.name) when 'object' then p_rule -> part.name else '{}' end
    ) as entry
    where entry.key !~ '^[A-Za-z0-9_-]+$'
      or pg_catalog.jsonb_typeof(entry.value) <> 'string'
      or entry.value #>> '{}' ~ '[\x01-\x1f\x7f]'
  );
  v_problems := v_problems || array(
    select pg_catalog.format('%s.http.%s: a status or a class like 4xx, and one of %s', p_name, rule.key, v_meanings)
    from pg_catalog.jsonb_each_text(
      case pg_catalog.jsonb_typeof(p_rule -> 'http') when 'object' then p_rule -> 'http' else '{}' end
    ) as rule
    where rule.key !~ '^([1-5]\d\d|[1-5]xx)$'
      or rule.value <> all (v_meanings)
  );
  v_problems := v_problems || array(
    select pg_catalog.format('%s.%s: %s', p_name, part.name, part.kind)
    from (values ('http', 'an object'), ('answers', 'a list')) as part (name, kind)
    where pg_catalog.jsonb_typeof(p_rule -> part.name) <> case part.name when 'http' then 'object' else 'array' end
  );

  for v_rule in
    select pg_catalog.format('%s.answers[%s]', p_name, rule.place - 1) as place, rule.value
    from pg_catalog.jsonb_path_query(p_rule, '$.answers[*]') with ordinality as rule (value, place)
  loop
    v_problems := v_problems || aivedio._predicate_problems(v_rule.place || '.when', v_rule.value -> 'when');
    if coalesce(v_rule.value ->> 'means', '') <> all (v_meanings) then
      v_problems := v_problems || pg_catalog.format('%s.means: one of %s', v_rule.place, v_meanings);
    end if;
  end loop;
  return v_problems;
end;
$_one_request_problems$;

comment on function aivedio._one_request_problems is
  'Stage 30: what is wrong with one request of a profile.';
