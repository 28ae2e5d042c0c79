-- Stage 70: credits are reserved, settled or refunded once per attempt, in whatever order messages come.
begin;
\ir support/fixtures.sql
select plan(9);

select fixture.job('good', 'ready');
select fixture.job('bad', 'failed');

create function pg_temp.book(p_task text, p_status text)
returns text
language sql
as $book$
  select aivedio.book_credit(
    jsonb_build_object('attempt_id', fixture.id('attempt of ' || p_task), 'status', p_status, 'event_id', 7)
  );
$book$;

create function pg_temp.ledger(p_task text)
returns text
language sql
as $ledger$
  select string_agg(entry.ledger_type || ':' || entry.amount, ' ' order by entry.ledger_type)
  from aivedio.credit_ledger as entry where entry.task_id = fixture.id(p_task);
$ledger$;

select is(pg_temp.book('good', 'created'), 'ignored', 'nothing is booked before submission');
select is(pg_temp.book('good', 'ready'), 'settle', 'an early callback skips "submitted"');
select is(pg_temp.ledger('good'), 'reserve:1 settle:1', 'so settling writes the missing reserve');
select is(pg_temp.book('good', 'submitted'), 'duplicate', 'and a late "submitted" adds nothing');
select is(pg_temp.book('good', 'failed'), 'refused', 'what is settled is not refunded');

select is(pg_temp.book('bad', 'submitted'), 'reserve', 'submission reserves');
select is(pg_temp.book('bad', 'failed'), 'refund', 'failure refunds');
select is(pg_temp.book('bad', 'ready'), 'refused', 'what is refunded is not settled');
select is(
  (select known.kind from aivedio.reconciliation_cases as known), 'billing', 'but is somebody''s to look at'
);

select finish();
rollback;
