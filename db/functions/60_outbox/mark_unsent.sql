/*
 * Stage 60 · outbox · mark_unsent
 *
 * Records that the broker refused these rows for what they are. Each refusal counts one try and delays the next;
 * after the setting poison_retries the row is parked with an alarm, and later rows of its task flow on,
 * flagged. An outage is no refusal: then nothing is called and nothing is counted, however long.
 *
 * Called by   relay/outbox.py, as the shard's owner
 * Writes      aivedio.outbox_events, aivedio.alarms
 * Locks       the rows, in id order; then alarms, in order of subject
 * Raises      VC601  the session does not own the shard
 */
create or replace function aivedio.mark_unsent(
  p_shard smallint,
  p_ids   bigint[],
  p_error text
)
returns integer
language plpgsql
volatile
security definer  -- the relay marks rows without writing the table
set search_path = ''
as $mark_unsent$
declare
  v_now    constant timestamptz := aivedio._clock();
  v_limit  constant integer := aivedio._setting('poison_retries');
  v_parked bigint[];
  v_id     bigint;
begin
  perform aivedio._require_shard(p_shard);

  with refused as (
    update aivedio.outbox_events as pending
    set retry_count    = pending.retry_count + 1,
        last_error     = pg_catalog.left(p_error, 500),
        publish_status = case when pending.retry_count + 1 >= v_limit then 'parked' else 'pending' end,
        next_retry_at  = v_now + pg_catalog.make_interval(
          secs => least(60, 2 ^ pending.retry_count) * (0.8 + 0.4 * pg_catalog.random())
        )
    where pending.id = any (p_ids)
      and pending.shard = p_shard
      and pending.publish_status = 'pending'
    returning pending.id, pending.publish_status
  )
  select pg_catalog.array_agg(refused.id order by refused.id)
  into v_parked
  from refused
  where refused.publish_status = 'parked';

  foreach v_id in array coalesce(v_parked, '{}')
  loop
    perform aivedio._raise_alarm(
      'outbox_parked', v_id::text, pg_catalog.jsonb_build_object('error', pg_catalog.left(p_error, 500))
    );
  end loop;

  return coalesce(pg_catalog.cardinality(v_parked), 0);
end;
$mark_unsent$;

comment on function aivedio.mark_unsent is
  'Stage 60: count a refusal of rows by the broker and delay them; parks and alarms after poison_retries. Answers how many were parked.';

grant execute on function aivedio.mark_unsent to aivedio_relay;
