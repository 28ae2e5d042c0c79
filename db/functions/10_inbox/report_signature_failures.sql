/*
 * Stage 10 · inbox · report_signature_failures
 *
 * Takes the webhook edge's count of refused signatures, once a minute: a flood of bad callbacks must not
 * reach the database one by one. Repetition raises an alarm: a secret was rotated without us, or somebody
 * is trying. A missing key and a body over the limit raise it at once. Answers how many providers were alarmed.
 *
 * Called by   edge/intake/webhook.py, as aivedio_webhook
 * Writes      aivedio.alarms
 * Locks       the alarms' rows, in order of their subject
 */
create or replace function aivedio.report_signature_failures(p_failures aivedio.signature_failure[])
returns integer
language plpgsql
volatile
security definer  -- aivedio_webhook may raise this alarm without writing the table
set search_path = ''
as $report_signature_failures$
declare
  v_failed record;
  v_raised integer := 0;
begin
  for v_failed in
    select failure.provider, pg_catalog.jsonb_object_agg(failure.class, failure.failures) as classes
    from (
      select
        report.provider,
        pg_catalog.left(report.class, 32) as class,
        pg_catalog.sum(report.failures) as failures
      from pg_catalog.unnest(p_failures) as report
      join aivedio.providers as provider on provider.name = report.provider
      where report.class is not null
        and report.failures > 0
      group by 1, 2
    ) as failure
    group by failure.provider
    having pg_catalog.sum(failure.failures) >= aivedio._setting('signature_alarm_after')
      -- Nobody guesses at these: every callback of the provider is being lost.
      or pg_catalog.bool_or(failure.class in ('no_key', 'too_large'))
    order by failure.provider
  loop
    perform aivedio._raise_alarm('signature_failures', v_failed.provider, v_failed.classes);
    v_raised := v_raised + 1;
  end loop;

  return v_raised;
end;
$report_signature_failures$;

comment on function aivedio.report_signature_failures is
  'Stage 10: take counts of refused signatures; repetition raises an alarm. Answers the number of alarms.';

grant execute on function aivedio.report_signature_failures to aivedio_webhook;
