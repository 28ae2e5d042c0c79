-- Views of the catalog that the contract files read.
create temporary view schema_function as
select
  function.oid, function.proname as name, function.prosecdef, function.proconfig, function.proargnames,
  function.proacl, function.prosrc, function.provolatile, function.proowner, function.prorettype,
  -- Text without comments, so that a sentence about a statement is not taken for one; words, without strings.
  regexp_replace(function.prosrc, '--[^\n]*|/\*.*?\*/', '', 'g') as code,
  regexp_replace(function.prosrc, '''([^'']|'''')*''|--[^\n]*|/\*.*?\*/', '', 'g') as words
from pg_proc as function
where function.pronamespace = 'aivedio'::regnamespace;

create temporary view edge_role as
select role.oid, role.rolname as name
from pg_roles as role
where role.rolname in (
  'aivedio_webhook', 'aivedio_inbox', 'aivedio_poll', 'aivedio_submit', 'aivedio_relay',
  'aivedio_consumer', 'aivedio_gateway', 'aivedio_app', 'aivedio_operator'
);

-- Which functions a function calls, and the closure of that.
create temporary view call as
select caller.name as caller, callee.name as callee
from schema_function as caller
join schema_function as callee on caller.code ~ ('aivedio\.' || callee.name || '\M\s*\(');

create temporary view reach as
with recursive step as (
  select function.name as caller, function.name as callee from schema_function as function
  union
  select step.caller, call.callee from step join call on call.caller = step.callee
)
select step.caller, step.callee from step;

create temporary view may_execute as
select edge_role.name as role, function.name as function
from edge_role
cross join schema_function as function
where has_function_privilege(edge_role.oid, function.oid, 'execute');
