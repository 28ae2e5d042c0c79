/*
 * Stage 30 · observation · _replicate_progress
 *
 * Replicate has no progress field, but most of its models print a progress bar to their logs. The last
 * percentage of such a bar is the best guess there is; the state machine keeps it monotone.
 *
 * Called by   _read_progress, named in the profile "replicate"
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._replicate_progress(p_payload jsonb)
returns numeric
language sql
immutable
set search_path = ''
as $_replicate_progress$
  select bar.number[1]::numeric
  from pg_catalog.regexp_matches(pg_catalog.right(p_payload ->> 'logs', 4000), '(\d{1,3})%\|', 'g')
    with ordinality as bar (number, place)
  order by bar.place desc
  limit 1;
$_replicate_progress$;

comment on function aivedio._replicate_progress is
  'Stage 30: the last percentage of a progress bar in a Replicate prediction''s logs.';
