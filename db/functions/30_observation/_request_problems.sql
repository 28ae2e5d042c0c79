/*
 * Stage 30 · observation · _request_problems
 *
 * What is wrong with the requests that a profile describes: submit, and where there are any, poll and cancel.
 *
 * Called by   _profile_problems
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._request_problems(p_profile jsonb)
returns text[]
language plpgsql
stable
set search_path = ''
as $_request_problems$
declare
  v_meanings constant text[] := array[
    'body', 'failed', 'canceled', 'not_found', 'auth', 'throttled', 'retry', 'refused'
  ];
  v_names    constant text := '^(model|client_request_id|callback_url|provider_task_id|input(\.\w+)*)$';
  v_problems text[] := '{}'::text[];
  v_name     text;
  v_rule     jsonb;
begin
  foreach v_name in array array['submit', 'poll', 'cancel'] loop
    v_rule := p_profile -> v_name;

    if coalesce(pg_catalog.jsonb_typeof(v_rule), 'null') = 'null' then
      if v_name = 'submit' then
        v_problems := v_problems || 'submit: missing'::text;
      elsif v_name = 'poll' and coalesce(pg_catalog.jsonb_typeof(p_profile -> 'webhook'), 'null') = 'null' then
        v_problems := v_problems || 'poll: needed where there is no webhook'::text;
      end if;
      continue;
    elsif pg_catalog.jsonb_typeof(v_rule) <> 'object' then
      v_problems := v_problems || pg_catalog.format('%s: an object', v_name);
      continue;
    end if;

    if coalesce(v_rule ->> 'method', '') not in ('GET', 'POST', 'PUT', 'PATCH', 'DELETE') then
      v_problems := v_problems || pg_catalog.format('%s.method: GET, POST, PUT, PATCH or DELETE', v_name);
    end if;
    if coalesce(v_rule ->> 'path', '') !~ '^/[^\s#]*$' or v_rule ->> 'path' like '//%' then
      v_problems := v_problems || pg_catalog.format('%s.path: a path that begins with one slash', v_name);
    end if;
    if v_name <> 'submit' and pg_catalog.strpos(v_rule::text, '{provider_task_id}') = 0 then
      v_problems := v_problems || pg_catalog.format('%s: {provider_task_id} stands nowhere', v_name);
    end if;

    v_problems := v_problems || array(
      select pg_catalog.format('%s: there is no placeholder {%s}', v_name, found.name[1])
      from pg_catalog.regexp_matches(v_rule::text, '\{([a-z_]+(?:\.\w+)*)\}', 'g') as found (name)
      where found.name[1] !~ v_names
    );
    v_problems := v_problems || array(
      select pg_catalog.format('%s.headers.%s: name and value are plain text', v_name, header.key)
      from pg_catalog.jsonb_each(
        case pg_catalog.jsonb_typeof(v_rule -> 'headers') when 'object' then v_rule -> 'headers' else '{}' end
      ) as header
      where header.key !~ '^[A-Za-z0-9-]+$'
        or pg_catalog.jsonb_typeof(header.value) <> 'string'
        or header.value #>> '{}' ~ '[\x01-\x1f\x7f]'
    );
    v_problems := v_problems || array(
      select pg_catalog.format('%s.http.%s: a status or a class like 4xx, and one of %s', v_name, rule.key, v_meanings)
      from pg_catalog.jsonb_each_text(
        case pg_catalog.jsonb_typeof(v_rule -> 'http') when 'object' then v_rule -> 'http' else '{}' end
      ) as rule
      where rule.key !~ '^([1-5]\d\d|[1-5]xx)$'
        or rule.value <> all (v_meanings)
    );
  end loop;

  if pg_catalog.jsonb_typeof(p_profile -> 'submit') = 'object' then
    v_problems := v_problems
      || aivedio._path_problems('submit.provider_task_id', p_profile #> '{submit,provider_task_id}', true);
    if not coalesce(p_profile @? '$.submit.accepted[0] ? (@ >= 200 && @ <= 299)', false) then
      v_problems := v_problems || 'submit.accepted: the HTTP statuses of success, 2xx'::text;
    end if;
  end if;
  if pg_catalog.jsonb_typeof(p_profile -> 'cancel') = 'object'
    and not coalesce(p_profile @? '$.cancel.confirmed[0] ? (@ >= 200 && @ <= 499)', false)
  then
    v_problems := v_problems || 'cancel.confirmed: the HTTP statuses that confirm'::text;
  end if;

  return v_problems;
end;
$_request_problems$;

comment on function aivedio._request_problems is
  'Stage 30: what is wrong with a profile''s submit, poll and cancel requests.';
