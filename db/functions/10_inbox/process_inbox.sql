/*
 * Stage 10 · inbox · process_inbox
 *
 * Applies waiting callbacks of the caller's shards, oldest first. Claim and effect are one transaction: the
 * row's lock is its lease, so a worker that dies leaves nothing behind.
 *
 * All streams, tasks and attempts of the batch are locked once, in the fixed order, before the first
 * change. The batch is applied in one subtransaction; a row that breaks it is named by a variable, which
 * survives the rollback: it ends dead, and the others are applied again without it. A batch that breaks
 * more than three times is cut off before its next bad row; the rest stays for the next call.
 *
 * Called by   edge/intake/inbox.py, as aivedio_inbox
 * Writes      aivedio.provider_callback_inbox, what _apply_locked writes, aivedio.attempt_outputs, aivedio.alarms
 * Locks       inbox rows (skip locked) → project streams → tasks → attempts → cases → alarms
 * Raises      40P01, 40001, 55P03, 53…, 23514 "no partition": the batch is as it was; call again later
 */
create or replace function aivedio.process_inbox(
  p_shards smallint[],
  p_limit  integer default 200
)
returns aivedio.inbox_batch
language plpgsql
volatile
security definer  -- aivedio_inbox may have callbacks applied without reading them
set search_path = ''
as $process_inbox$
declare
  v_claims  aivedio.claimed_callback[];
  v_done    aivedio.processed_callback[];
  v_alarm   record;
  v_shard   smallint;
  v_result  aivedio.inbox_batch;
begin
  select claim.p_claims, claim.p_foreign
  into v_claims, v_result.foreign_shards
  from aivedio._claim_callbacks(p_shards, p_limit) as claim;

  perform aivedio._lock_attempts(
    array(select claim.attempt_id from pg_catalog.unnest(v_claims) as claim where claim.attempt_id is not null)
  );

  v_done := aivedio._apply_callbacks(v_claims);
  perform aivedio._finish_callbacks(v_done);

  select
    count(*),
    count(*) filter (where done.verdict = 'applied'),
    count(*) filter (where done.status = 'done' and done.verdict <> 'applied'),
    count(*) filter (where done.status = 'retry'),
    count(*) filter (where done.status = 'dead')
  into v_result.claimed, v_result.applied, v_result.ignored, v_result.retried, v_result.dead
  from pg_catalog.unnest(v_done) as done;

  for v_alarm in
    select done.alarm, done.alarm_subject, pg_catalog.jsonb_agg(done.inbox_id) as rows, max(done.error) as error
    from pg_catalog.unnest(v_done) as done
    where done.alarm is not null
    group by done.alarm, done.alarm_subject
    order by done.alarm, done.alarm_subject
  loop
    perform aivedio._raise_alarm(
      v_alarm.alarm, v_alarm.alarm_subject,
      pg_catalog.jsonb_build_object('inbox_ids', v_alarm.rows, 'error', v_alarm.error)
    );
  end loop;

  perform aivedio._ring_outbox(
    array(select done.emitted from pg_catalog.unnest(v_done) as done where done.emitted is not null)
  );
  if exists (select 1 from pg_catalog.unnest(v_done) as done where done.verdict = 'hint') then
    perform aivedio._ring('aivedio_poll');
  end if;
  foreach v_shard in array v_result.foreign_shards loop
    perform aivedio._ring('aivedio_inbox', v_shard);
  end loop;

  return v_result;
end;
$process_inbox$;

comment on function aivedio.process_inbox is
  'Stage 10: apply waiting callbacks of these shards; answers counts, and the other shards that have work.';

grant execute on function aivedio.process_inbox to aivedio_inbox;
