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
 * Rows are inserted in the order of their keys, so that two batches with the same keys wait for each other
 * instead of deadlocking. Call it as a statement of its own, and answer the provider after its commit.
 *
 * Called by   edge/intake/inbox.py, as aivedio_webhook
 * Writes      aivedio.provider_callback_inbox; aivedio.alarms, last
 * Locks       the new rows; a concurrent twin waits for this transaction
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
  v_now      constant timestamptz := aivedio._clock();
  v_item     record;
  v_answer   aivedio.accepted_callback;
  v_ring     boolean := false;
  v_unusable text[] := '{}'::text[];
  v_provider text;
begin
  -- A transaction owns an id before it draws from the sequence: the low-water mark relies on it.
  perform pg_catalog.pg_current_xact_id();

  for v_item in
    with delivery as materialized (
      select
        callback,
        profile.value as profile,
        body.payload,
        case when callback.signed then
          pg_catalog.left(coalesce(callback.error, aivedio._body_problem(body.payload, profile.value)), 64)
        end as problem
      from pg_catalog.unnest(p_callbacks) as callback
      -- offset 0: each is computed once, however often it is used.
      cross join lateral (select aivedio._profile(callback.provider) as value offset 0) as profile
      cross join lateral (
        select case when callback.signed then aivedio._parse_body(callback.body) end as payload offset 0
      ) as body
    ),
    item as (
      select
        delivery.*,
        false as is_hint,
        aivedio._callback_key(delivery.callback, delivery.payload, delivery.profile) collate "C" as dedup_key
      from delivery
      where (delivery.callback).signed
      union all
      select
        delivery.*,
        true,
        aivedio._hint_key((delivery.callback).token_hash)
      from delivery
      join aivedio.task_attempts as attempt
        on attempt.callback_token_hash = (delivery.callback).token_hash
        and attempt.provider = (delivery.callback).provider
      where not (delivery.callback).signed
        or delivery.problem is not null
    )
    select item.*
    from item
    order by (item.callback).provider, item.dedup_key, (item.callback).ordinal
  loop
    v_answer := null;

    if v_item.is_hint then
      v_answer.inbox_id := aivedio._arm_hint(v_item.callback);
    else
      insert into aivedio.provider_callback_inbox as inbox (
        provider, dedup_key, provider_event_id, provider_task_id, client_request_id, received_at,
        signature_key_version, payload_hash, payload, process_status, last_error_code, processed_at,
        headers, callback_token_hash, trace_id
      )
      values (
        (v_item.callback).provider,
        v_item.dedup_key,
        aivedio._callback_event(v_item.callback, v_item.payload, v_item.profile),
        aivedio._read_id(v_item.payload, v_item.profile #>> '{fields,provider_task_id}'),
        aivedio._read_id(v_item.payload, v_item.profile #>> '{fields,client_request_id}'),
        v_now,
        (v_item.callback).signature_key_version,
        (v_item.callback).body_hash,
        case when v_item.problem is null then aivedio._redact(v_item.payload, v_item.profile -> 'redact') end,
        case when v_item.problem is null then 'pending' else 'dead' end,
        v_item.problem,
        case when v_item.problem is not null then v_now end,
        coalesce((v_item.callback).headers, '{}'),
        (v_item.callback).token_hash,
        (v_item.callback).trace_id
      )
      on conflict on constraint uq_provider_callback_dedup do nothing
      returning inbox.id into v_answer.inbox_id;
    end if;

    v_answer.ordinal := (v_item.callback).ordinal;
    v_answer.is_new := v_answer.inbox_id is not null;
    v_answer.is_dead := v_item.problem is not null;

    if v_item.is_hint or v_item.problem is null then
      v_ring := v_ring or v_answer.is_new;
    elsif v_answer.is_new then
      v_unusable := v_unusable || (v_item.callback).provider;
    end if;

    if not v_item.is_hint or not (v_item.callback).signed then
      return next v_answer;
    end if;
  end loop;

  for v_provider in
    select distinct unusable.provider
    from pg_catalog.unnest(v_unusable) as unusable (provider)
    order by unusable.provider
  loop
    perform aivedio._raise_alarm('callback_unusable', v_provider);
  end loop;

  if v_ring then
    perform aivedio._ring('aivedio_inbox');
  end if;
end;
$accept_callbacks$;

comment on function aivedio.accept_callbacks is
  'Stage 10: store verified callbacks, each distinct delivery once; answers by ordinal whether it was new.';

grant execute on function aivedio.accept_callbacks to aivedio_webhook;
