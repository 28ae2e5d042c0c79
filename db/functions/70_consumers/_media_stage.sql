/*
 * Stage 70 · consumers · _media_stage
 *
 * The stage of processing_media that an operation stands for, and what follows it.
 *
 * Called by   report_media
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._media_stage(
  p_operation_type text,
  out p_stage      text,
  out p_next       text
)
language sql
immutable
set search_path = ''
as $_media_stage$
  select
    case p_operation_type
      when 'backhaul' then 'backhauling' when 'verify' then 'verifying'
      when 'transcode' then 'transcoding' when 'publish' then 'publishing'
    end,
    case p_operation_type
      when 'backhaul' then 'verify'
      when 'verify' then 'transcode'
      when 'transcode' then 'publish'
    end;
$_media_stage$;

comment on function aivedio._media_stage is
  'Stage 70: an operation''s stage and the operation after it, null after publish.';
