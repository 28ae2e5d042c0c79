/*
 * Stage 70 · consumers · _is_media_report
 *
 * Whether the media plane's report is one of the three that there are, and only one: what is half understood must not
 * be taken for success, nor for a failure that is final.
 *
 * Called by   report_media
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._is_media_report(p_report jsonb)
returns boolean
language plpgsql
immutable
set search_path = ''
as $_is_media_report$
begin
  if pg_catalog.jsonb_typeof(p_report) is distinct from 'object' then
    return false;
  end if;

  return case
    when p_report ? 'done' then pg_catalog.jsonb_typeof(p_report -> 'done') = 'object' and not p_report ? 'failed'
    when p_report ? 'failed' then pg_catalog.jsonb_typeof(p_report -> 'failed') = 'string'
      and p_report ->> 'failed' <> ''
      and coalesce(pg_catalog.jsonb_typeof(p_report -> 'retry'), 'boolean') = 'boolean'
    else coalesce(pg_catalog.jsonb_typeof(p_report -> 'progress') = 'number', false)
  end;
end;
$_is_media_report$;

comment on function aivedio._is_media_report is
  'Stage 70: whether a report says progress, done or failed, in the right types.';
