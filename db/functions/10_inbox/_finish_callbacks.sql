/*
 * Stage 10 · inbox · _finish_callbacks
 *
 * Writes what became of a batch to its inbox rows. A callback that is done loses what may not be kept: its
 * output URLs have been copied, the rest is what the profile says. One that waits comes again after
 * 1, 2, 4 … seconds, give or take a fifth, up to orphan_retry_cap_s.
 *
 * Called by   process_inbox, replay_callback
 * Writes      aivedio.provider_callback_inbox
 * Locks       nothing: the caller holds the rows
 */
create or replace function aivedio._finish_callbacks(p_done aivedio.processed_callback[])
returns void
language plpgsql
volatile
set search_path = ''
as $_finish_callbacks$
declare
  v_now constant timestamptz := aivedio._clock();
  v_cap constant double precision := aivedio._setting('orphan_retry_cap_s');
begin
  with redaction as materialized (
    select
      provider.name,
      coalesce(provider.effective -> 'redact_after', '[]') || aivedio._output_paths(provider.effective) as paths
    from aivedio.providers as provider
  )
  update aivedio.provider_callback_inbox as inbox
  set process_status  = done.status,
      verdict         = done.verdict,
      attempt_id      = done.attempt_id,
      last_error_code = done.error,
      processed_at    = case when done.status <> 'retry' then v_now end,
      retry_count     = inbox.retry_count + (done.status = 'retry')::integer,
      next_retry_at   = case
        when done.status = 'retry' then v_now + pg_catalog.make_interval(
          secs => least(v_cap, 2.0 ^ least(inbox.retry_count, 20)) * (0.8 + 0.4 * pg_catalog.random())
        )
      end,
      payload         = case
        when done.status = 'done' then aivedio._redact(inbox.payload, redaction.paths)
        else inbox.payload
      end
  from pg_catalog.unnest(p_done) as done
  cross join redaction
  where inbox.id = done.inbox_id
    and redaction.name = inbox.provider;
end;
$_finish_callbacks$;

comment on function aivedio._finish_callbacks is
  'Stage 10: write the outcome of a batch to its inbox rows, without what may not be kept.';
