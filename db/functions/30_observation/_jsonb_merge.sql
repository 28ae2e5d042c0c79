/*
 * Stage 30 · observation · _jsonb_merge
 *
 * Lays one JSON value over another: objects are merged key by key, at every depth; anything else,
 * arrays too, is replaced whole; a null removes the key.
 *
 * Called by   define_provider, override_provider, rotate_webhook_secret
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._jsonb_merge(
  p_base jsonb,
  p_over jsonb
)
returns jsonb
language plpgsql
immutable
set search_path = ''
as $_jsonb_merge$
declare
  v_merged jsonb := case pg_catalog.jsonb_typeof(p_base) when 'object' then p_base else '{}' end;
  v_key    text;
  v_value  jsonb;
begin
  if pg_catalog.jsonb_typeof(p_over) is distinct from 'object' then
    return p_over;
  end if;

  for v_key, v_value in
    select entry.key, entry.value from pg_catalog.jsonb_each(p_over) as entry
  loop
    if pg_catalog.jsonb_typeof(v_value) = 'null' then
      v_merged := v_merged - v_key;
    else
      v_merged := v_merged || pg_catalog.jsonb_build_object(v_key, aivedio._jsonb_merge(v_merged -> v_key, v_value));
    end if;
  end loop;

  return v_merged;
end;
$_jsonb_merge$;

comment on function aivedio._jsonb_merge is
  'Stage 30: lay one JSON value over another, key by key at every depth; null removes a key.';
