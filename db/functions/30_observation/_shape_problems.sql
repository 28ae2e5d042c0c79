/*
 * Stage 30 · observation · _shape_problems
 *
 * Which parts of a profile have the wrong JSON type. What may be left out is left out: a null would be neither
 * there nor absent.
 *
 * Called by   _profile_problems
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._shape_problems(p_profile jsonb)
returns text[]
language plpgsql
immutable
set search_path = ''
as $_shape_problems$
begin
  return array(
    select pg_catalog.format(
      '%s: %s', pg_catalog.array_to_string(shape.path, '.'),
      case shape.type when 'boolean' then 'true or false' when 'array' then 'a list' else 'an object' end
    )
    from (values
      ('{success_needs_output}'::text[],  'boolean'),
      ('{webhook,thin}'::text[],          'boolean'),
      ('{functions}'::text[],             'object'),
      ('{quota}'::text[],                 'object'),
      ('{poll,interval_s}'::text[],       'object'),
      ('{submit,headers}'::text[],        'object'),
      ('{poll,headers}'::text[],          'object'),
      ('{poll,then,headers}'::text[],     'object'),
      ('{cancel,headers}'::text[],        'object'),
      ('{submit,query}'::text[],          'object'),
      ('{poll,query}'::text[],            'object'),
      ('{poll,then,query}'::text[],       'object'),
      ('{cancel,query}'::text[],          'object'),
      ('{submit,accepted}'::text[],       'array'),
      ('{cancel,confirmed}'::text[],      'array'),
      ('{webhook,required}'::text[],      'array'),
      ('{webhook,secrets}'::text[],       'array'),
      ('{webhook,keep_headers}'::text[],  'array'),
      ('{webhook,content_types}'::text[], 'array'),
      ('{errors}'::text[],                'array'),
      ('{hidden_failures}'::text[],       'array'),
      ('{redact}'::text[],                'array'),
      ('{redact_after}'::text[],          'array')
    ) as shape (path, type)
    where pg_catalog.jsonb_typeof(p_profile #> shape.path) <> shape.type
  );
end;
$_shape_problems$;

comment on function aivedio._shape_problems is
  'Stage 30: which parts of a profile have the wrong JSON type.';
