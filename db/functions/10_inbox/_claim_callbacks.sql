/*
 * Stage 10 · inbox · _claim_callbacks
 *
 * Takes the oldest due callbacks of some shards. A callback's shard is its project's, which only the mapping to an
 * attempt tells: by the token of its URL, then by our client_request_id, then by the provider's task id. The first
 * that names an attempt decides; if another names a different one, the clues disagree and nothing may be applied.
 * An id that we have never seen contradicts nothing: some providers report another id than they answered at
 * submission. A callback without an attempt belongs to shard 0.
 *
 * Candidates are looked at without locks, from the inbox's safe low-water mark on, until there are enough; then
 * those are locked that nobody else holds. What was seen of other shards on the way is reported, so that they can
 * be rung for.
 *
 * Called by   process_inbox
 * Writes      aivedio.queue_marks
 * Locks       the claimed inbox rows, with skip locked
 */
create or replace function aivedio._claim_callbacks(
  p_shards smallint[],
  p_limit  integer,
  out p_claims  aivedio.claimed_callback[],
  out p_foreign smallint[]
)
language plpgsql
volatile
set search_path = ''
as $_claim_callbacks$
declare
  v_now        constant timestamptz := aivedio._clock();
  v_low        constant bigint := aivedio._advance_inbox_mark();
  v_candidate  record;
  v_shard      smallint;
  v_claims     aivedio.claimed_callback[] := '{}'::aivedio.claimed_callback[];
begin
  p_foreign := '{}'::smallint[];

  for v_candidate in
    select waiting.id, waiting.attempt_id, waiting.project_id, waiting.agrees
    from aivedio.mapped_callbacks as waiting
    where waiting.process_status in ('pending', 'retry')
      and waiting.id > v_low
      and (waiting.next_retry_at is null or waiting.next_retry_at <= v_now)
    order by waiting.id
    limit p_limit * 8
  loop
    v_shard := coalesce(aivedio._shard(v_candidate.project_id), 0::smallint);
    if v_shard = any (p_shards) then
      v_claims := v_claims
        || row(v_candidate.id, v_candidate.attempt_id, v_candidate.agrees)::aivedio.claimed_callback;
      exit when pg_catalog.cardinality(v_claims) >= p_limit;
    elsif v_shard <> all (p_foreign) then
      p_foreign := p_foreign || v_shard;
    end if;
  end loop;

  with locked as materialized (
    select waiting.id
    from aivedio.provider_callback_inbox as waiting
    where waiting.id = any (array(select chosen.inbox_id from pg_catalog.unnest(v_claims) as chosen))
      and waiting.process_status in ('pending', 'retry')
    for no key update skip locked
  )
  select coalesce(pg_catalog.array_agg(chosen order by chosen.inbox_id), '{}')
  into p_claims
  from pg_catalog.unnest(v_claims) as chosen
  join locked on locked.id = chosen.inbox_id;
end;
$_claim_callbacks$;

comment on function aivedio._claim_callbacks is
  'Stage 10: map and lock the oldest due callbacks of these shards; also names the other shards that have work.';
