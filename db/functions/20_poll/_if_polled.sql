/*
 * Stage 20 · poll · _if_polled
 *
 * When an attempt is to be polled: the moment asked for, or never, where the provider cannot be asked. An attempt that
 * seems to be due and is never handed out would keep the poll edge awake for nothing.
 *
 * Called by   _hint_poll, settle_cancel, _update_attempt
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._if_polled(
  p_provider text,
  p_at       timestamptz
)
returns timestamptz
language sql
stable
set search_path = ''
as $_if_polled$
  select p_at
  from aivedio.providers as provider
  where provider.name = p_provider
    and pg_catalog.jsonb_typeof(provider.effective -> 'poll') = 'object';
$_if_polled$;

comment on function aivedio._if_polled is
  'Stage 20: the moment itself if the provider answers polls, else null.';
