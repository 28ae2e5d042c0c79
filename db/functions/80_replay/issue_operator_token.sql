/*
 * Stage 80 · replay · issue_operator_token
 *
 * Stores a one-time login of the operators' page, by its hash: for who is named, in role read (may look) or act (may
 * also act). Audited, because it gives rights.
 *
 * Called by   aivedio up; aivedio operator-link
 * Writes      aivedio.one_time_tokens, aivedio.operator_actions
 * Locks       the new row
 * Raises      VC801  the hash is not SHA-256
 *             VC803  there is no such role of operators
 */
create or replace function aivedio.issue_operator_token(
  p_token_hash bytea,
  p_role       text,
  p_who        text,
  p_session    text
)
returns timestamptz
language plpgsql
volatile
security definer  -- operators issue their links without writing the table
set search_path = ''
as $issue_operator_token$
begin
  if coalesce(p_role, '') not in ('read', 'act') then
    raise exception 'there is no such role of operators'
      using errcode = 'VC803',
            detail  = pg_catalog.format('role %s', p_role),
            hint    = 'Use read or act.';
  end if;

  perform aivedio._audit(p_who, 'issue_operator_token', p_who, 'role ' || p_role);
  return aivedio._store_token(
    'login', p_token_hash, '00000000-0000-0000-0000-000000000000', null, pg_catalog.md5(p_who)::uuid, p_session,
    pg_catalog.jsonb_build_object('operator', p_role, 'sub', pg_catalog.left(pg_catalog.btrim(p_who), 300))
  );
end;
$issue_operator_token$;

comment on function aivedio.issue_operator_token is
  'Stage 80: store a one-time login of the operators'' page for somebody, in role read or act, by its SHA-256, audited; answers when it expires.';

grant execute on function aivedio.issue_operator_token to aivedio_operator;
