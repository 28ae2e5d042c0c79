/*
 * Stage 00 · base · _open_case
 *
 * Opens a reconciliation case, or adds evidence to the open one of the same kind and subject.
 * Evidence keeps its first entry and the newest nineteen.
 *
 * Called by   _process_orphan, _refuse_mapping, _accept_submit, _lose_submit, _note_case, _apply_locked, book_credit,
 *             under the locks of stream, task and attempt
 * Writes      aivedio.reconciliation_cases
 * Locks       the case's row, after stream, task and attempt
 */
create or replace function aivedio._open_case(
  p_kind     text,
  p_subject  text,
  p_attempt  aivedio.task_attempts,
  p_provider text,
  p_evidence jsonb
)
returns uuid
language plpgsql
volatile
set search_path = ''
as $_open_case$
declare
  v_now  constant timestamptz := aivedio._clock();
  v_fact constant jsonb := pg_catalog.jsonb_build_object('at', v_now) || p_evidence;
  v_case uuid;
begin
  insert into aivedio.reconciliation_cases as known (
    id, kind, subject, tenant_id, project_id, task_id, attempt_id, provider, evidence, opened_at, last_at
  )
  values (
    aivedio._uuid7(), p_kind, p_subject, p_attempt.tenant_id, p_attempt.project_id, p_attempt.task_id, p_attempt.id,
    coalesce(p_provider, p_attempt.provider), pg_catalog.jsonb_build_array(v_fact), v_now, v_now
  )
  on conflict (kind, subject) where state = 'open'
  do update
  set last_at  = excluded.last_at,
      evidence = case
        when pg_catalog.jsonb_array_length(known.evidence) < 20 then known.evidence
        else known.evidence - 1
      end || excluded.evidence
  returning known.id into v_case;

  return v_case;
end;
$_open_case$;

comment on function aivedio._open_case is
  'Stage 00: open a reconciliation case or add evidence to the open one; answers its id. The attempt may be null for a callback without one.';
