/*
 * Stage 90 · operate · _watch_attempts
 *
 * Opens the case of attempts past their deadline that no poll would ever notice: the provider has them, but under an
 * id that we do not know, or it answers no queries; or nobody knows whether it has them, and no open case says so; or
 * the application was to submit them, and never said that it did. The other ones are noticed by their polls.
 *
 * Called by   upkeep
 * Writes      aivedio.reconciliation_cases, aivedio.alarms
 * Locks       the attempts (skip locked) → their cases → alarms
 */
create or replace function aivedio._watch_attempts()
returns integer
language plpgsql
volatile
set search_path = ''
as $_watch_attempts$
declare
  v_now       constant timestamptz := aivedio._clock();
  v_attempt   aivedio.task_attempts;
  v_providers text[] := '{}'::text[];
  v_provider  text;
begin
  for v_attempt in
    select attempt.*
    from aivedio.task_attempts as attempt
    join aivedio.providers as provider on provider.name = attempt.provider
    where attempt.terminal_at is null
      and attempt.submit_state in ('accepted', 'unknown', 'application')
      and attempt.deadline_at < v_now
      and (
        attempt.provider_task_id is null
        or attempt.next_poll_at is null
        or pg_catalog.jsonb_typeof(provider.effective -> 'poll') is distinct from 'object'
      )
      and not exists (
        select 1
        from aivedio.reconciliation_cases as known
        where known.kind in ('overdue', 'submit_unknown')
          and known.subject = attempt.id::text
          and known.state = 'open'
      )
    order by attempt.deadline_at
    limit 100
    for no key update of attempt skip locked
  loop
    perform aivedio._note_case(
      'overdue', v_attempt,
      pg_catalog.jsonb_build_object('deadline_at', v_attempt.deadline_at, 'why', 'it cannot be asked about')
    );
    v_providers := v_providers || v_attempt.provider;
  end loop;

  for v_provider in
    select distinct late.provider from pg_catalog.unnest(v_providers) as late (provider) order by late.provider
  loop
    perform aivedio._raise_alarm('attempt_overdue', v_provider);
  end loop;
  return pg_catalog.cardinality(v_providers);
end;
$_watch_attempts$;

comment on function aivedio._watch_attempts is
  'Stage 90: open the cases of overdue attempts that cannot be polled; answers how many.';
