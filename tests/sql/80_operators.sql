-- Stage 80: only operators make operators: their links work once, name who and in which role, and end when they are revoked.
begin;
\ir support/fixtures.sql
select plan(17);

set local role aivedio_operator;
select is(
  aivedio.issue_operator_token(sha256('t1'), 'act', ' ops@example.com ', 'session-1'), '2026-06-24 03:20:00+00'::timestamptz,
  'a link lasts ten minutes'
);
select results_eq(
  $$ select token.claims, token.session_id from aivedio.redeem_token('login', sha256('t1')) as token $$,
  $$ values ('{"sub": "ops@example.com", "operator": "act"}'::jsonb, 'session-1') $$,
  'it says who, and in which role'
);
select is((select token.session_id from aivedio.redeem_token('login', sha256('t1')) as token), null, 'it works once');
select is((select action.action || ': ' || action.reason from aivedio.list_actions(1) as action), 'issue_operator_token: role act', 'and is audited');
select throws_ok($$ select aivedio.issue_operator_token(sha256('t2'), 'rule', 'ops', 's') $$, 'VC803', null, 'there are two roles');
select throws_ok($$ select aivedio.issue_operator_token(sha256('t2'), null, 'ops', 's') $$, 'VC803', null, 'and none is neither');
select throws_ok($$ select aivedio.issue_operator_token(sha256('t2'), 'read', ' ', 's') $$, 'VC002', null, 'somebody has to be named');
select throws_ok($$ select aivedio.issue_operator_token('t2', 'read', 'ops', 's') $$, 'VC801', null, 'and the token hashed');

-- Nobody else makes one.
reset role;
select throws_ok(
  format($$ set local role %I; select aivedio.issue_operator_token(sha256('t3'), 'act', 'me', 's') $$, role), '42501', null,
  role || ' makes no operator'
)
from unnest(array['aivedio_gateway', 'aivedio_app', 'aivedio_webhook']) as role;
select throws_ok(
  $$ select aivedio.issue_token('login', sha256('t3'), fixture.id('tenant'), null, fixture.id('user'), 's', '{"operator": "act"}') $$,
  'VC802', null, 'not by the way of other logins either'
);
select lives_ok(
  $$ select aivedio.issue_token('login', sha256('t4'), fixture.id('tenant'), null, fixture.id('user'), 's', '{"projects": []}') $$, 'which go on'
);

-- Ending a session.
select is(aivedio.is_revoked('t', 'ops', 's1', aivedio._clock()), false, 'a session holds');
select aivedio.revoke_access('session', 's1', 'ops', 'stolen laptop');
select is(aivedio.is_revoked('t', 'ops', 's1', aivedio._clock()), true, 'until it is revoked');
select is(aivedio.is_revoked('t', 'ops', 's1', aivedio._clock() + interval '1 second'), false, 'a later one is another');
select aivedio.revoke_access('user', 'ops', 'boss', 'left the company');
select is(aivedio.is_revoked('t', 'ops', 's2', aivedio._clock()), true, 'a user''s sessions end together');

select finish();
rollback;
