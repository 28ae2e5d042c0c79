-- migrate:up
-- 0021  What a checkup finds, and where secrets are expected.
set local role aivedio_owner;

create type aivedio.checked_item as (
  subject text,
  state   text,
  detail  text,
  advice  text
);
comment on type aivedio.checked_item is
  'One thing that was looked at: state is ok, warn (works, but look at it) or wrong; detail is what was found, advice what to do about it, null when it is ok.';

create type aivedio.secret_reference as (
  provider  text,
  reference text,
  required  boolean
);
comment on type aivedio.secret_reference is
  'Where a provider''s profile expects a secret; required tells whether the provider is of no use without it.';

reset role;

-- migrate:down
-- Forward only: a later migration corrects an earlier one.
