/*
 * Stage 20 · poll · _check_outcome
 *
 * Refuses the outcome of a request that is none: before anything is looked up, locked or written, so that a worker's
 * mistake is the worker's. What the provider sent is not looked at: whatever a body holds, it has a meaning; and an
 * outcome that says too little means that nothing is known.
 *
 * Called by   settle_cancel, settle_poll, settle_submit
 * Writes      nothing
 * Locks       nothing
 * Raises      VC201  the outcome is no object, or its fields have other types
 */
create or replace function aivedio._check_outcome(p_outcome jsonb)
returns void
language plpgsql
immutable
set search_path = ''
as $_check_outcome$
begin
  if pg_catalog.jsonb_typeof(p_outcome) is distinct from 'object'
    or coalesce(pg_catalog.jsonb_typeof(p_outcome -> 'kind'), 'null') not in ('null', 'string')
    or coalesce(pg_catalog.jsonb_typeof(p_outcome -> 'http_status'), 'null') not in ('null', 'number')
    or coalesce(pg_catalog.jsonb_typeof(p_outcome -> 'retry_after_s'), 'null') not in ('null', 'number')
    or not coalesce((p_outcome -> 'http_status') @? '$ ? (@ == null || (@ >= 0 && @ <= 999 && @.floor() == @))', true)
    or not coalesce((p_outcome -> 'retry_after_s') @? '$ ? (@ == null || (@ >= -1e15 && @ <= 1e15))', true)
  then
    raise exception 'outcome of a request has no known shape'
      using errcode = 'VC201',
            detail  = coalesce(pg_catalog.left(p_outcome::text, 200), 'nothing'),
            hint    = 'Send {"kind": "response", "http_status": 200, "body": ...}, or another kind without a status.';
  end if;
end;
$_check_outcome$;

comment on function aivedio._check_outcome is
  'Stage 20: raise VC201 unless this is the outcome of a request as the edges report it.';
