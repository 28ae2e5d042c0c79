/*
 * Stage 20 · poll · _note_success
 *
 * A provider answered a poll properly: its circuit closes and its refusals are forgotten. While all is well, nothing
 * is written.
 *
 * Called by   _reschedule_poll and _continue_poll, after cases
 * Writes      aivedio.poll_quotas; what _close_circuit writes
 * Locks       circuit → provider's bucket, only when they change
 */
create or replace function aivedio._note_success(
  p_provider   text,
  p_credential text
)
returns void
language plpgsql
volatile
set search_path = ''
as $_note_success$
begin
  perform aivedio._close_circuit(p_provider, p_credential);

  update aivedio.poll_quotas as quota
  set refusals = 0
  where quota.level = 'provider'
    and quota.key = p_provider
    and quota.refusals > 0
    and (quota.blocked_until is null or quota.blocked_until <= aivedio._clock());
end;
$_note_success$;

comment on function aivedio._note_success is
  'Stage 20: close a credential''s circuit and forget refusals after a proper answer.';
