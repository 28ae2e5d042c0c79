/*
 * Stage 90 · operate · _purge_callbacks
 *
 * Deletes callbacks that nobody can repeat any more: done, and older than retention_days_inbox and than twice the
 * span for which their provider repeats itself; dead, and older than retention_days_dead. Rows that wait stay.
 *
 * Called by   purge
 * Writes      aivedio.provider_callback_inbox
 * Locks       the rows it deletes, with skip locked
 */
create or replace function aivedio._purge_callbacks(p_limit integer)
returns integer
language plpgsql
volatile
set search_path = ''
as $_purge_callbacks$
declare
  v_now   constant timestamptz := aivedio._clock();
  v_done  constant interval := pg_catalog.make_interval(days => aivedio._setting('retention_days_inbox')::integer);
  v_dead  constant interval := pg_catalog.make_interval(days => aivedio._setting('retention_days_dead')::integer);
  v_count integer;
begin
  with old as materialized (
    select inbox.id
    from aivedio.provider_callback_inbox as inbox
    left join aivedio.providers as provider on provider.name = inbox.provider
    where inbox.received_at < v_now - least(v_done, v_dead)
      and inbox.received_at < v_now - case inbox.process_status
        when 'done' then
          greatest(v_done, 2 * pg_catalog.make_interval(secs => (provider.effective ->> 'retry_span_s')::float8))
        when 'dead' then v_dead
      end
    order by inbox.received_at
    limit p_limit
    for no key update of inbox skip locked
  )
  delete from aivedio.provider_callback_inbox as inbox
  using old
  where inbox.id = old.id;
  get diagnostics v_count = row_count;
  return v_count;
end;
$_purge_callbacks$;

comment on function aivedio._purge_callbacks is
  'Stage 90: delete one bounded batch of callbacks that no provider repeats any more; answers how many.';
