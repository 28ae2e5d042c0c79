/*
 * Stage 10 · inbox · _refuse_mapping
 *
 * Records that a callback's clues contradict each other: its token, our request id and the provider's task id
 * name different attempts. Which of them lies cannot be known here.
 *
 * Called by   _process_callback
 * Writes      aivedio.reconciliation_cases
 * Locks       the case's row
 */
create or replace function aivedio._refuse_mapping(
  p_inbox   aivedio.provider_callback_inbox,
  p_attempt uuid
)
returns void
language plpgsql
volatile
set search_path = ''
as $_refuse_mapping$
declare
  v_attempt aivedio.task_attempts;
begin
  select attempt.*
  into v_attempt
  from aivedio.task_attempts as attempt
  where attempt.id = p_attempt;

  perform aivedio._open_case(
    'mapping', p_inbox.id::text, v_attempt, p_inbox.provider,
    pg_catalog.jsonb_build_object(
      'inbox_id', p_inbox.id,
      'provider_task_id', p_inbox.provider_task_id,
      'client_request_id', p_inbox.client_request_id,
      'attempts', (
        select pg_catalog.jsonb_agg(attempt.id order by attempt.id)
        from aivedio.task_attempts as attempt
        where attempt.provider = p_inbox.provider
          and (
            attempt.callback_token_hash = p_inbox.callback_token_hash
            or attempt.client_request_id = p_inbox.client_request_id
            or attempt.provider_task_id = p_inbox.provider_task_id
          )
      )
    )
  );
end;
$_refuse_mapping$;

comment on function aivedio._refuse_mapping is
  'Stage 10: open the case of a callback whose clues name different attempts.';
