-- Every PL/pgSQL function passes plpgsql_check without an error or a warning.
--
-- Two kinds of remark are left out. Performance remarks advise on casts of constants and on volatility,
-- which it cannot judge where SQL is dynamic; a dynamic query whose columns it cannot know is
-- no finding but a limit of the tool.
begin;
select plan(1);

select is_empty(
  $$
    select format(
      '%s:%s: %s: %s%s', function.proname, finding.lineno, finding.level, finding.message,
      coalesce(' (' || finding.detail || ')', '')
    )
    from pg_proc as function
    join pg_language as language on language.oid = function.prolang
    cross join lateral plpgsql_check_function_tb(
      function.oid,
      fatal_errors => false,
      other_warnings => true,
      extra_warnings => true,
      performance_warnings => false,
      security_warnings => true,
      compatibility_warnings => true
    ) as finding
    where function.pronamespace = 'aivedio'::regnamespace
      and language.lanname = 'plpgsql'
      and finding.message <> 'cannot determinate a result of dynamic SQL'
  $$,
  'plpgsql_check finds nothing'
);

select finish();
rollback;
