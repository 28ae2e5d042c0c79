/*
 * Stage 30 · observation · _pattern_problems
 *
 * What is wrong with a regular expression of a profile.
 *
 * Called by   _place_problems, _rule_problems, _value_problems
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._pattern_problems(
  p_place   text,
  p_pattern text
)
returns text[]
language plpgsql
immutable
set search_path = ''
as $_pattern_problems$
begin
  if coalesce(p_pattern, '') = '' then
    return array[p_place || ': a regular expression'];
  end if;

  -- Running it is the check.
  perform '' ~* p_pattern;
  return '{}'::text[];
exception
  when invalid_regular_expression then
    return array[p_place || ': no valid regular expression'];
end;
$_pattern_problems$;

comment on function aivedio._pattern_problems is
  'Stage 30: what is wrong with a regular expression, if anything.';
