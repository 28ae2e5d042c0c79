-- migrate:up
-- 0020  What the functions of this schema are, as rows: for docs/sql.md and for whoever has only psql.
set local role aivedio_owner;

create type aivedio.described_function as (
  stage     text,
  name      text,
  arguments text,
  returns   text,
  roles     text[],
  meaning   text
);
comment on type aivedio.described_function is
  'A function that may be called from outside: its stage, its signature, the roles that may call it (aivedio_ left out), and its comment without the stage.';

reset role;

-- migrate:down
-- Forward only: a later migration corrects an earlier one.
