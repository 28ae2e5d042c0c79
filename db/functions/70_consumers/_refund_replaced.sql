/*
 * Stage 70 · consumers · _refund_replaced
 *
 * Refunds what is still reserved for attempts of a task that are no longer its current one: their ends
 * make no event, so nobody else would.
 *
 * Called by   book_credit, holding the task's attempts
 * Writes      aivedio.credit_ledger
 * Locks       nothing
 */
create or replace function aivedio._refund_replaced(
  p_task     uuid,
  p_event_id bigint
)
returns void
language plpgsql
volatile
set search_path = ''
as $_refund_replaced$
begin
  insert into aivedio.credit_ledger (
    tenant_id, project_id, task_id, attempt_id, ledger_type, amount, event_id, created_at
  )
  select
    reserved.tenant_id, reserved.project_id, reserved.task_id, reserved.attempt_id, 'refund', reserved.amount,
    p_event_id, aivedio._clock()
  from aivedio.credit_ledger as reserved
  join aivedio.generation_tasks as task on task.id = reserved.task_id
  where reserved.task_id = p_task
    and reserved.ledger_type = 'reserve'
    and reserved.attempt_id <> task.current_attempt_id
    and not exists (
      select 1
      from aivedio.credit_ledger as booked
      where booked.task_id = p_task
        and booked.attempt_id = reserved.attempt_id
        and booked.ledger_type in ('settle', 'refund')
    );
end;
$_refund_replaced$;

comment on function aivedio._refund_replaced is
  'Stage 70: refund the reserves of attempts that another attempt of the task has replaced.';
