/*
 * Stage 30 · observation · _read_outputs
 *
 * Collects the output URLs of a payload as [{kind, url, expires_in_s}]. A profile's outputs are a path, or a
 * list of {path, kind, url}; what a path finds may be a URL, an object with a url, or arrays of these. A provider that
 * names its results by ids has a template: {} in its url stands for what the path finds, {base_url} for the
 * profile's. Anything that is no http(s) URL of a sane length is left out.
 *
 * Called by   _normalise
 * Writes      nothing
 * Locks       nothing
 * Raises      VC304  there are more outputs than the profile's max_outputs (100 by default)
 */
create or replace function aivedio._read_outputs(
  p_payload jsonb,
  p_profile jsonb
)
returns jsonb
language plpgsql
immutable
set search_path = ''
as $_read_outputs$
declare
  v_rules    jsonb := p_profile #> '{fields,outputs}';
  v_most     constant integer := coalesce((p_profile ->> 'max_outputs')::integer, 100);
  v_lifetime constant jsonb := p_profile -> 'output_lifetime_s';
  v_outputs  jsonb;
begin
  if pg_catalog.jsonb_typeof(v_rules) = 'string' then
    v_rules := pg_catalog.jsonb_build_array(pg_catalog.jsonb_build_object('path', v_rules));
  elsif pg_catalog.jsonb_typeof(v_rules) is distinct from 'array' then
    return null;
  end if;

  select pg_catalog.jsonb_agg(
    pg_catalog.jsonb_build_object('kind', output.kind, 'url', output.url, 'expires_in_s', v_lifetime)
    order by output.rule, output.place
  )
  into v_outputs
  from (
    select
      rule.ordinality as rule,
      item.ordinality as place,
      coalesce(rule.value ->> 'kind', 'video') as kind,
      case
        when rule.value ->> 'url' is not null then pg_catalog.replace(
          pg_catalog.replace(rule.value ->> 'url', '{base_url}', p_profile ->> 'base_url'),
          '{}',
          case when pg_catalog.jsonb_typeof(item.value) in ('string', 'number')
            then nullif(aivedio._url_part(item.value #>> '{}'), '')
          end
        )
        when pg_catalog.jsonb_typeof(item.value) = 'object' then item.value ->> 'url'
        else item.value #>> '{}'
      end as url
    from pg_catalog.jsonb_array_elements(v_rules) with ordinality as rule (value, ordinality),
      -- The lax [*] unwraps an array and leaves a single value as it is.
      pg_catalog.jsonb_path_query(
        p_payload, ('lax ' || (rule.value ->> 'path') || '[*]')::jsonpath, '{}', true
      ) with ordinality as item (value, ordinality)
  ) as output
  where output.url ~ '^https?://[^\s]+$'
    and pg_catalog.length(output.url) <= 8192;

  if pg_catalog.jsonb_array_length(v_outputs) > v_most then
    raise exception 'a result has too many outputs'
      using errcode = 'VC304',
            detail  = pg_catalog.format('%s outputs, at most %s', pg_catalog.jsonb_array_length(v_outputs), v_most),
            hint    = 'Raise max_outputs in the provider''s profile if this is no mistake.';
  end if;

  return v_outputs;
end;
$_read_outputs$;

comment on function aivedio._read_outputs is
  'Stage 30: the outputs of a payload as [{kind, url, expires_in_s}], null when there are none.';
