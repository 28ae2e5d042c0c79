-- Stage 80: who may follow a project, and tokens that work once.
begin;
\ir support/fixtures.sql
select plan(23);

select fixture.project();
select fixture.member();
select fixture.project('foreign', 'stranger');

create function pg_temp.role(p_project text default 'project', p_user text default 'user', p_claimed boolean default false)
returns text
language sql
as $role$
  select aivedio.may_access(
    fixture.id('tenant'), fixture.id(p_project), fixture.id(p_user), 'session-1', aivedio._clock() - interval '1 minute', p_claimed
  );
$role$;

select is(pg_temp.role(), 'member', 'a member may');
select is(pg_temp.role(p_user => 'visitor'), null, 'a visitor may not');
select is(pg_temp.role(p_user => 'visitor', p_claimed => true), 'member', 'unless the session names the project');
select is(pg_temp.role('missing'), null, 'a missing project is nobody''s');
select is(pg_temp.role('foreign', p_claimed => true), null, 'a foreign one neither, whatever the session claims');

select aivedio.revoke_access('session', 'session-1', 'ops@example.com', 'stolen laptop');
select is(pg_temp.role(), null, 'a revoked session may nothing');
select is(
  aivedio.may_access(fixture.id('tenant'), fixture.id('project'), fixture.id('user'), 'session-2', aivedio._clock(), false),
  'member',
  'a new session of the same user may'
);
select aivedio.revoke_access('user', fixture.id('user')::text, 'ops@example.com', 'left the company');
select is(
  aivedio.may_access(fixture.id('tenant'), fixture.id('project'), fixture.id('user'), 'session-2', aivedio._clock() - interval '1 second', false),
  null,
  'until the user is revoked'
);

select is(
  aivedio.issue_token('stream', sha256('t1'), fixture.id('tenant'), fixture.id('project'), fixture.id('user'), 'session-3'),
  timestamptz '2026-06-24 03:11:00+00',
  'a stream token lives for a minute'
);
select is((aivedio.redeem_token('login', sha256('t1'))).user_id, null, 'for its own purpose only');
select is((aivedio.redeem_token('stream', sha256('t1'))).user_id, fixture.id('user'), 'it stands for its user');
select is((aivedio.redeem_token('stream', sha256('t1'))).user_id, null, 'once');

select aivedio.issue_token('stream', sha256('t2'), fixture.id('tenant'), fixture.id('project'), fixture.id('user'), 'session-3');
set local aivedio.now = '2026-06-24 03:11:01+00';
select is((aivedio.redeem_token('stream', sha256('t2'))).user_id, null, 'and not after its minute');
select throws_ok(
  $$ select aivedio.issue_token('stream', 't3', fixture.id('tenant'), null, fixture.id('user'), 's') $$,
  'VC801', 'token hash is not SHA-256',
  'a token itself never enters the database'
);
select throws_ok(
  $$ select aivedio.add_member(fixture.id('tenant'), fixture.id('foreign'), fixture.id('user')) $$,
  'VC404', 'there is no such project',
  'nobody becomes a member of a foreign project'
);
-- A project that nobody has used belongs to whoever uses it first; nobody else adds members to it.
select aivedio.add_member(fixture.id('tenant'), fixture.id('new'), fixture.id('user'), 'viewer');
select throws_ok(
  $$ select aivedio.add_member(fixture.id('stranger'), fixture.id('new'), fixture.id('user'), 'operator') $$,
  'VC404', 'there is no such project', 'a membership of another tenant is not changed'
);
select throws_ok(
  $$ select aivedio.add_member(fixture.id('stranger'), fixture.id('new'), fixture.id('spy')) $$,
  'VC404', 'there is no such project', 'nor is one added beside it'
);
select throws_ok(
  $$ select aivedio.create_task(fixture.id('stranger'), fixture.id('new'), fixture.id('spy'), 'replicate', 'm', '{}') $$,
  'VC404', 'there is no such project', 'and nobody else creates its first task'
);
select is(pg_temp.role('new'), 'viewer', 'the first one keeps it');
select aivedio.add_member(fixture.id('tenant'), fixture.id('new'), fixture.id('user'));
select is(pg_temp.role('new'), 'member', 'and changes roles');

-- A membership that another tenant has left in a project is not silently kept.
insert into aivedio.project_members (project_id, user_id, tenant_id, role)
values (fixture.id('project'), fixture.id('leftover'), fixture.id('stranger'), 'viewer');
select throws_ok(
  $$ select aivedio.add_member(fixture.id('tenant'), fixture.id('project'), fixture.id('leftover')) $$,
  'VC404', 'there is no such project', 'a foreign membership is refused'
);
select is(
  (select member.role from aivedio.project_members as member where member.user_id = fixture.id('leftover')), 'viewer', 'and stays as it is'
);
select aivedio.add_member(fixture.id('tenant'), fixture.id('project'), fixture.id('visitor'), 'viewer');
select is(pg_temp.role(p_user => 'visitor'), 'viewer', 'a role is what was given');

select finish();
rollback;
