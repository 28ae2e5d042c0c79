/*
 * Stage 70 · consumers · _credits
 *
 * What an attempt costs: what was reserved for it, else its provider's price of today.
 *
 * Called by   book_credit
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._credits(p_attempt aivedio.task_attempts)
returns bigint
language plpgsql
stable
set search_path = ''
as $_credits$
begin
  return coalesce(
    (
      select entry.amount
      from aivedio.credit_ledger as entry
      where entry.task_id = p_attempt.task_id
        and entry.attempt_id = p_attempt.id
        and entry.ledger_type = 'reserve'
    ),
    (
      select coalesce(
        (provider.effective #>> array['model_credits', p_attempt.model])::bigint,
        (provider.effective ->> 'credits')::bigint
      )
      from aivedio.providers as provider
      where provider.name = p_attempt.provider
    ),
    1
  );
end;
$_credits$;

comment on function aivedio._credits is
  'Stage 70: the credits of an attempt, as reserved or as its profile says now.';
