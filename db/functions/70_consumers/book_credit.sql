/*
 * Stage 70 · consumers · book_credit
 *
 * What the billing consumer does with a message: reserves at submission, settles at ready, refunds at failed or
 * canceled. Each attempt has each entry once, never both settle and refund; a missing reserve is written in the
 * same call, because an early callback skips "submitted". The ledger may be asked any number of times, in any order.
 *
 * The price is the profile's "credits" (per model under "model_credits"), 1 where it says nothing, at the time of
 * the reserve: what is settled or refunded is what was reserved.
 *
 * An attempt that another one has replaced brings no more messages, however it ends: what it has reserved is
 * refunded with the next message of its task. If it is adopted later, that is a billing case.
 *
 * Called by   relay/consume.py, group billing
 * Writes      aivedio.credit_ledger; aivedio.reconciliation_cases when a refunded attempt turns out well
 * Locks       the task's attempts, so that settle and refund of one attempt exclude each other → case
 * Raises      VC701  the message names no task or attempt
 */
create or replace function aivedio.book_credit(p_message jsonb)
returns text
language plpgsql
volatile
security definer  -- the consumer books credits without writing the table
set search_path = ''
as $book_credit$
declare
  v_attempt_id uuid;
  v_event_id   bigint;
  v_attempt    aivedio.task_attempts;
  v_answer     text;
  v_entry      constant text := case
    when p_message ->> 'status' = 'ready' then 'settle'
    when p_message ->> 'status' in ('failed', 'canceled') then 'refund'
    when p_message ->> 'status' in ('submitted', 'queued', 'running', 'provider_succeeded') then 'reserve'
  end;
begin
  select about.p_attempt, about.p_event_id
  into v_attempt_id, v_event_id
  from aivedio._message_ids(p_message) as about;

  select attempt.*
  into v_attempt
  from aivedio.task_attempts as attempt
  where attempt.id = v_attempt_id;

  if not found or v_entry is null then
    return 'ignored';
  end if;

  perform 1
  from aivedio.task_attempts as attempt
  where attempt.task_id = v_attempt.task_id
  order by attempt.id
  for no key update;

  if v_entry <> 'reserve' and exists (
    select 1
    from aivedio.credit_ledger as entry
    where entry.attempt_id = v_attempt.id
      and entry.ledger_type = case v_entry when 'settle' then 'refund' else 'settle' end
  ) then
    if v_entry = 'settle' then
      perform aivedio._open_case(
        'billing', v_attempt.id::text, v_attempt, null,
        pg_catalog.jsonb_build_object('refused', 'settle after refund', 'event_id', v_event_id)
      );
    end if;
    v_answer := 'refused';
  else
    insert into aivedio.credit_ledger (
      tenant_id, project_id, task_id, attempt_id, ledger_type, amount, event_id, created_at
    )
    select
      v_attempt.tenant_id, v_attempt.project_id, v_attempt.task_id, v_attempt.id, entry.ledger_type,
      aivedio._credits(v_attempt), v_event_id, aivedio._clock()
    from pg_catalog.unnest(
      case v_entry when 'reserve' then array['reserve'] else array['reserve', v_entry] end
    ) as entry (ledger_type)
    on conflict on constraint credit_ledger_once do nothing;

    v_answer := case when found then v_entry else 'duplicate' end;
  end if;

  perform aivedio._refund_replaced(v_attempt.task_id, v_event_id);
  return v_answer;
end;
$book_credit$;

comment on function aivedio.book_credit is
  'Stage 70: reserve, settle or refund an attempt''s credits for a message; answers the entry, duplicate, refused or ignored.';

grant execute on function aivedio.book_credit to aivedio_consumer;
