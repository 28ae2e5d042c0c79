/*
 * Stage 30 · observation · _fields
 *
 * Where a profile finds things in what comes from this source. Callbacks may be shaped differently from answers: the
 * fields of the webhook section stand over the common ones, one by one; a null there means "not in callbacks".
 *
 * Called by   _normalise, _body_key, _read_callback
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._fields(
  p_profile jsonb,
  p_source  text
)
returns jsonb
language plpgsql
immutable
set search_path = ''
as $_fields$
begin
  if p_source = 'webhook' and p_profile #> '{webhook,fields}' is not null then
    return (p_profile -> 'fields') || (p_profile #> '{webhook,fields}');
  end if;
  return p_profile -> 'fields';
end;
$_fields$;

comment on function aivedio._fields is
  'Stage 30: the paths by which a profile reads what comes from one source.';
