/*
 * Stage 10 · inbox · accept_callbacks
 *
 * Stores what the webhook edge has verified, all deliveries that wait for one commit together. A repeat
 * makes no row and is no error. A body that cannot be used is stored dead, without it, and alarmed: the
 * provider is answered all the same, since sending it again would not help.
 *
 * An unsigned delivery is only a hint to poll; so is an unusable one whose token we know. With an unknown
 * token, an unsigned delivery gets no row and no answer here, and the edge says 404.
 *
 * Call it as a statement of its own, and answer the provider after its commit.
 *
 * Called by   edge/intake/accepting.py, as aivedio_webhook
 * Writes      aivedio.provider_callback_inbox; aivedio.alarms, last
 * Locks       the new rows, signed deliveries before hints, both in the order of their keys; a concurrent twin
 *             waits for this transaction
 * Raises      VC301  the provider is not defined
 */
create or replace function aivedio.accept_callbacks(p_callbacks aivedio.received_callback[])
returns setof aivedio.accepted_callback
language plpgsql
volatile
security definer  -- aivedio_webhook may add callbacks without reading the inbox
set search_path = ''
as $accept_callbacks$
declare
  v_callback aivedio.received_callback;
  v_provider text;
  v_profile  jsonb;
  v_entry    aivedio.callback_entry;
  v_entries  aivedio.callback_entry[] := '{}'::aivedio.callback_entry[];
  v_hints    aivedio.received_callback[] := '{}'::aivedio.received_callback[];
  v_answers  aivedio.accepted_callback[];
begin
  -- A transaction owns an id before it draws from the sequence: the low-water mark relies on it.
  perform pg_catalog.pg_current_xact_id();

  foreach v_callback in array coalesce(p_callbacks, '{}') loop
    if v_callback.provider is distinct from v_provider then
      v_provider := v_callback.provider;
      v_profile := aivedio._profile(v_provider);
    end if;

    if v_callback.signed then
      v_entry := aivedio._read_callback(v_callback, v_profile);
      v_entries := v_entries || v_entry;
    end if;
    if not v_callback.signed or (v_entry.problem is not null and v_callback.token_hash is not null) then
      v_hints := v_hints || v_callback;
    end if;
  end loop;

  v_answers := aivedio._store_callbacks(v_entries) || aivedio._store_hints(v_hints);

  for v_provider in
    select distinct entry.provider
    from pg_catalog.unnest(v_answers) as answer
    join pg_catalog.unnest(v_entries) as entry on entry.ordinal = answer.ordinal
    where answer.is_new
      and answer.is_dead
    order by entry.provider
  loop
    perform aivedio._raise_alarm('callback_unusable', v_provider);
  end loop;

  if exists (select 1 from pg_catalog.unnest(v_answers) as answer where answer.is_new and not answer.is_dead) then
    perform aivedio._ring('aivedio_inbox');
  end if;

  return query
  select answer.ordinal, answer.inbox_id, answer.is_new, answer.is_dead
  from pg_catalog.unnest(v_answers) as answer
  where answer.ordinal is not null
  order by answer.ordinal;
end;
$accept_callbacks$;

comment on function aivedio.accept_callbacks is
  'Stage 10: store verified callbacks, each distinct delivery once; answers by ordinal whether it was new.';

grant execute on function aivedio.accept_callbacks to aivedio_webhook;
