/*
 * Stage 40 · state · _check_words
 *
 * Refuses words of a command that could not be kept: a trace id travels in every event of its task, whose size is
 * bounded, and a key is looked up by an index.
 *
 * Called by   _create_task, start_attempt
 * Writes      nothing
 * Locks       nothing
 * Raises      VC415  the key or the trace id is empty or too long
 */
create or replace function aivedio._check_words(
  p_key      text,
  p_trace_id text
)
returns void
language plpgsql
immutable
set search_path = ''
as $_check_words$
begin
  if pg_catalog.length(p_key) not between 1 and 300 or pg_catalog.length(p_trace_id) not between 1 and 200 then
    raise exception 'key or trace id is empty or too long'
      using errcode = 'VC415',
            hint    = 'A key has 1 to 300 characters, a trace id 1 to 200; send none rather than an empty one.';
  end if;
end;
$_check_words$;

comment on function aivedio._check_words is
  'Stage 40: raise VC415 for a key or trace id that is empty or too long.';
