/*
 * Stage 10 · inbox · _is_thin
 *
 * Whether a callback says too little to be applied, so that only a poll can tell: the profile declares its
 * callbacks thin, there is no status in it, or it reports a success without the output that
 * the profile requires.
 *
 * Called by   _process_callback, _read_poll
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._is_thin(
  p_profile     jsonb,
  p_observation aivedio.provider_observation
)
returns boolean
language plpgsql
immutable
set search_path = ''
as $_is_thin$
begin
  return coalesce((p_profile #>> '{webhook,thin}')::boolean, false)
    or p_observation.provider_word is null
    or (
      p_observation.normalized_status = 'succeeded'
      and p_observation.output_refs is null
      and coalesce((p_profile ->> 'success_needs_output')::boolean, false)
    );
end;
$_is_thin$;

comment on function aivedio._is_thin is
  'Stage 10: whether a callback is only a hint that the provider should be asked.';
