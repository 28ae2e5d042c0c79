/*
 * Stage 40 · state · _alarm_word
 *
 * Raises the alarm for a word that a provider's profile does not translate, one per word: the profile is
 * behind the provider.
 *
 * Called by   _reschedule_poll, apply_observation, last
 * Writes      aivedio.alarms
 * Locks       the alarm's row
 */
create or replace function aivedio._alarm_word(p_observation aivedio.provider_observation)
returns void
language plpgsql
volatile
set search_path = ''
as $_alarm_word$
begin
  perform aivedio._raise_alarm(
    'unknown_word', coalesce(p_observation.provider, '') || ':' || coalesce(p_observation.provider_word, ''),
    pg_catalog.jsonb_build_object('source', p_observation.source, 'attempt_id', p_observation.attempt_id)
  );
end;
$_alarm_word$;

comment on function aivedio._alarm_word is
  'Stage 40: raise the alarm for an unknown word of a provider.';
