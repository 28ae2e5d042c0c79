/*
 * Stage 00 · base · _setting
 *
 * Reads one row of aivedio.settings as a number.
 *
 * Called by   every function with a tunable number
 * Writes      nothing
 * Locks       nothing
 * Raises      VC001  there is no such setting
 */
create or replace function aivedio._setting(p_name text)
returns numeric
language plpgsql
stable
set search_path = ''
as $_setting$
declare
  v_value numeric;
begin
  select setting.value::numeric
  into v_value
  from aivedio.settings as setting
  where setting.name = p_name;

  if not found then
    raise exception 'there is no such setting'
      using errcode = 'VC001',
            detail  = pg_catalog.format('setting %s', p_name),
            hint    = 'Names and meanings are the rows of aivedio.settings.';
  end if;

  return v_value;
end;
$_setting$;

comment on function aivedio._setting is
  'Stage 00: the value of a setting, in the unit that its row describes.';
