/*
 * Stage 10 · inbox · _apply_callbacks
 *
 * Applies a batch in one subtransaction, and isolates the rows that break it: the variable that names the
 * current row survives the rollback. Such a row ends dead with its SQLSTATE and an alarm; the others are
 * applied again. Errors of the server condemn no row and are raised again.
 *
 * Called by   process_inbox, replay_callback, holding all locks of the batch
 * Writes      what _process_callback writes
 * Locks       nothing more than the caller, then the cases' rows
 * Raises      errors of the server, see _is_passing
 */
create or replace function aivedio._apply_callbacks(p_claims aivedio.claimed_callback[])
returns aivedio.processed_callback[]
language plpgsql
volatile
set search_path = ''
as $_apply_callbacks$
declare
  v_claims     aivedio.claimed_callback[] := p_claims;
  v_claim      record;
  v_current    aivedio.claimed_callback;
  v_provider   text;
  v_profile    jsonb;
  v_done       aivedio.processed_callback[];
  v_dead       aivedio.processed_callback[] := '{}'::aivedio.processed_callback[];
  v_poison     aivedio.processed_callback;
  v_sqlstate   text;
  v_constraint text;
begin
  loop
    v_current := null;
    v_done := '{}'::aivedio.processed_callback[];
    begin
      for v_claim in
        select claim, inbox
        from pg_catalog.unnest(v_claims) as claim
        join aivedio.provider_callback_inbox as inbox on inbox.id = claim.inbox_id
        order by claim.inbox_id
      loop
        v_current := v_claim.claim;
        if v_provider is distinct from (v_claim.inbox).provider then
          v_provider := (v_claim.inbox).provider;
          v_profile := aivedio._profile(v_provider);
        end if;
        v_done := v_done || aivedio._process_callback(v_current, v_claim.inbox, v_profile);
      end loop;
      exit;
    exception
      when others then
        get stacked diagnostics
          v_sqlstate = returned_sqlstate,
          v_constraint = constraint_name;
        if v_current.inbox_id is null or aivedio._is_passing(v_sqlstate, v_constraint) then
          raise;
        end if;

        v_poison := null;
        v_poison.inbox_id := v_current.inbox_id;
        v_poison.attempt_id := v_current.attempt_id;
        v_poison.status := 'dead';
        v_poison.error := v_sqlstate;
        v_poison.alarm := 'callback_poison';
        v_poison.alarm_subject := v_sqlstate;
        v_dead := v_dead || v_poison;

        -- Each round applies the good rows again. After a few, go only as far as the row before the next
        -- bad one could be: the rest is as it was, and the next call claims it.
        select pg_catalog.array_agg(claim order by claim.inbox_id)
        into v_claims
        from pg_catalog.unnest(v_claims) as claim
        where claim.inbox_id <> v_current.inbox_id
          and (pg_catalog.cardinality(v_dead) <= 3 or claim.inbox_id < v_current.inbox_id);
        v_claims := coalesce(v_claims, '{}'::aivedio.claimed_callback[]);
    end;
  end loop;

  return v_done || v_dead;
end;
$_apply_callbacks$;

comment on function aivedio._apply_callbacks is
  'Stage 10: apply claimed callbacks together, each bad one set aside as dead; answers what became of each.';
