/*
 * Stage 30 · observation · _number_problems
 *
 * What is wrong with a profile's numbers: rates, times and limits that are no numbers or make no sense, and polling
 * intervals that are no ranges. Timeouts end below half of their lease: a request may wait as long for a
 * connection as for its answer, and must not leave, or be answered, after its lease.
 *
 * Called by   _profile_problems
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._number_problems(p_profile jsonb)
returns text[]
language plpgsql
stable
set search_path = ''
as $_number_problems$
declare
  v_problems text[];
begin
  v_problems := array(
    select pg_catalog.format(
      '%s: a number from %s to %s', pg_catalog.array_to_string(limits.path, '.'), limits.least, limits.most
    )
    from (values
      ('{submit,timeout_s}'::text[],          1,     55),
      ('{submit,max_bytes}'::text[],          1024,  16777216),
      ('{poll,timeout_s}'::text[],            1,     25),
      ('{poll,max_bytes}'::text[],            1024,  16777216),
      ('{poll,cap_s}'::text[],                1,     86400),
      ('{poll,overdue_s}'::text[],            10,    86400),
      ('{poll,not_found_grace_s}'::text[],    0,     86400),
      ('{poll,throttle_base_s}'::text[],      0.1,   3600),
      ('{poll,circuit_faults}'::text[],       1,     1000),
      ('{poll,then,timeout_s}'::text[],       1,     25),
      ('{poll,then,max_bytes}'::text[],       1024,  16777216),
      ('{cancel,timeout_s}'::text[],          1,     25),
      ('{cancel,seen_within_s}'::text[],      1,     60),
      ('{auth,lifetime_s}'::text[],           60,    86400),
      ('{auth,early_s}'::text[],              0,     300),
      ('{webhook,tolerance_s}'::text[],       1,     3600),
      ('{webhook,max_body}'::text[],          1024,  8388608),
      ('{fields,progress_scale}'::text[],     0.001, 1000000),
      ('{webhook,fields,progress_scale}'::text[], 0.001, 1000000),
      ('{quota,provider}'::text[],            0.001, 10000),
      ('{quota,model}'::text[],               0.001, 10000),
      ('{max_outputs}'::text[],               1,     1000),
      ('{output_lifetime_s}'::text[],         1,     31536000),
      ('{deadline_s}'::text[],                1,     2592000),
      ('{retry_span_s}'::text[],              1,     2592000)
    ) as limits (path, least, most)
    cross join lateral (select p_profile #> limits.path as value) as found
    where coalesce(pg_catalog.jsonb_typeof(found.value), 'null') <> 'null'
      and not coalesce(
        case pg_catalog.jsonb_typeof(found.value)
          when 'number' then (found.value #>> '{}')::numeric between limits.least and limits.most
        end,
        false
      )
  );

  -- Credits are booked as they are: no fractions, no debts.
  v_problems := v_problems || array(
    select pg_catalog.format('%s: a whole number of credits', price.place)
    from (
      select 'credits' as place, p_profile -> 'credits' as value
      union all
      select 'model_credits.' || model.key, model.value
      from pg_catalog.jsonb_each(
        case pg_catalog.jsonb_typeof(p_profile -> 'model_credits')
          when 'object' then p_profile -> 'model_credits' else '{}'
        end
      ) as model
    ) as price
    where coalesce(pg_catalog.jsonb_typeof(price.value), 'null') <> 'null'
      and not coalesce(
        pg_catalog.jsonb_path_match(
          price.value, '$.type() == "number" && $ >= 0 && $ <= 1000000000 && $.floor() == $', '{}', true
        ),
        false
      )
  );
  if coalesce(pg_catalog.jsonb_typeof(p_profile -> 'model_credits'), 'null') not in ('null', 'object') then
    v_problems := v_problems || 'model_credits: an object of model and credits'::text;
  end if;

  return v_problems || array(
    select pg_catalog.format(
      'poll.interval_s.%s: [shortest, longest] in seconds, for submitted, queued, running or unknown', range.key
    )
    from pg_catalog.jsonb_each(
      case pg_catalog.jsonb_typeof(p_profile #> '{poll,interval_s}')
        when 'object' then p_profile #> '{poll,interval_s}' else '{}'
      end
    ) as range
    where range.key not in ('submitted', 'queued', 'running', 'unknown')
      or not coalesce(
        pg_catalog.jsonb_path_match(
          range.value,
          '$.type() == "array" && $.size() == 2 && $[0].type() == "number" && $[1].type() == "number"'
            ' && $[0] >= 0.1 && $[0] <= $[1] && $[1] <= 86400',
          '{}', true
        ),
        false
      )
  );
end;
$_number_problems$;

comment on function aivedio._number_problems is
  'Stage 30: what is wrong with a profile''s numbers.';
