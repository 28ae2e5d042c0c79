-- Stage 70: credits are reserved, settled or refunded once per attempt, in whatever order messages come.
begin;
\ir support/fixtures.sql
select plan(16);

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


-- What is settled is what was reserved, whatever the price is by then.
select fixture.job('dear', 'running');
select pg_temp.book('dear', 'running');
update aivedio.providers set effective = effective || '{"credits": 7}' where name = 'replicate';
select is(pg_temp.book('dear', 'ready'), 'settle', 'the price changes before a job is ready');
select is(pg_temp.ledger('dear'), 'reserve:1 settle:1', 'that is no surprise for who ordered it');
select fixture.job('new', 'running');
select is(pg_temp.book('new', 'running'), 'reserve', 'a new job');
select is(pg_temp.ledger('new'), 'reserve:7', 'has the new price');

-- An attempt that was replaced brings no more messages: the next message of its task frees what it has reserved.
update aivedio.task_attempts set deadline_at = aivedio._clock() - interval '1 second' where id = fixture.id('attempt of new');
select aivedio.start_attempt(fixture.id('tenant'), fixture.id('project'), fixture.id('new'), 'ops', 'overdue');
select is(
  (select aivedio.book_credit(jsonb_build_object('attempt_id', task.current_attempt_id, 'status', 'submitted', 'event_id', 8))
   from aivedio.generation_tasks as task where task.id = fixture.id('new')),
  'reserve',
  'the attempt that replaces it reserves'
);
select is(pg_temp.ledger('new'), 'refund:7 reserve:7 reserve:7', 'and the replaced one is refunded');
select is(pg_temp.book('new', 'ready'), 'refused', 'if it is adopted after all, somebody has to look at it');

select finish();
rollback;
