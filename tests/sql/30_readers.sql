-- Stage 30: values are read from any payload without ever failing on one.
begin;
\ir support/fixtures.sql
select plan(57);

-- Text: the first value at a path; a null and an empty string are none.
select is(aivedio._read_text('{"a": {"b": "x"}}', '$.a.b'), 'x', 'text is found at its path');
select is(aivedio._read_text('{"a": 7}', '$.a'), '7', 'a number is text too');
select is(aivedio._read_text('{"a": {"b": 1}}', '$.a'), '{"b": 1}', 'an object is its JSON');
select is(aivedio._read_text('{"a": ""}', '$.a'), null, 'an empty string is nothing');
select is(aivedio._read_text('{"a": null}', '$.a'), null, 'a null is nothing');
select is(aivedio._read_text('[1, 2]', '$.a'), null, 'a payload of another shape holds nothing');
select is(aivedio._read_text('{"a": 1}', null), null, 'without a path there is nothing');
select is(aivedio._read_text(null, '$.a'), null, 'without a payload there is nothing');
select is(aivedio._read_text('{"a": "x"}', 'strict $.b.c'), null, 'a strict path that fails finds nothing');

-- Identifiers: short strings and numbers only.
select is(aivedio._read_id('{"id": "p1"}', '$.id'), 'p1', 'a string is an id');
select is(aivedio._read_id('{"id": 12345678901234567890}', '$.id'), '12345678901234567890', 'a large number is an id, digit by digit');
select is(aivedio._read_id('{"id": true}', '$.id'), null, 'a boolean is no id');
select is(aivedio._read_id('{"id": ["p1"]}', '$.id'), null, 'an array is no id');
select is(aivedio._read_id('{"id": {"x": 1}}', '$.id'), null, 'an object is no id');
select is(aivedio._read_id('{"id": ""}', '$.id'), null, 'an empty string is no id');
select is(aivedio._read_id(jsonb_build_object('id', repeat('x', 255)), '$.id'), repeat('x', 255), '255 characters are an id');
select is(aivedio._read_id(jsonb_build_object('id', repeat('x', 256)), '$.id'), null, '256 characters are none');
select is(aivedio._read_id(jsonb_build_object('id', repeat('x', 1000000)), '$.id'), null, 'a million characters are none');

-- Numbers come as numbers or as strings.
select is(aivedio._read_number('42.5'), 42.5, 'a number is a number');
select is(aivedio._read_number('"39.000000"'), 39.0, 'a number in a string is a number');
select is(aivedio._read_number('"42 %"'), 42.0, 'a percentage is a number');
select is(aivedio._read_number('-1'), -1.0, 'a negative number is a number');
select is(aivedio._read_number('"NaN"'), null, 'NaN is none');
select is(aivedio._read_number('"Infinity"'), null, 'Infinity is none');
select is(aivedio._read_number('1e100000'), null, 'a number of a hundred thousand digits is none');
select is(aivedio._read_number('"1e5"'), null, 'an exponent in a string is none');
select is(aivedio._read_number('true'), null, 'a boolean is none');
select is(aivedio._read_number('{"a": 1}'), null, 'an object is none');
select is(aivedio._read_number('null'), null, 'a null is none');

-- Sequences fit a bigint or are none.
select is(aivedio._read_count('{"seq": 9223372036854775807}', '$.seq'), 9223372036854775807, 'the largest sequence fits');
select is(aivedio._read_count('{"seq": 9223372036854775808}', '$.seq'), null, 'one more is none, and no overflow');
select is(aivedio._read_count('{"seq": -1}', '$.seq'), null, 'a negative sequence is none');
select is(aivedio._read_count('{"seq": "17"}', '$.seq'), 17::bigint, 'a sequence may be a string');
select is(aivedio._read_count('{"seq": 1e40}', '$.seq'), null, 'an absurd sequence is none');
select is(aivedio._read_count('{"seq": 5}', null), null, 'without a path there is no sequence');

-- Times, around the frozen clock: 2026-06-24 03:10:00 UTC.
create function pg_temp.read(p_value jsonb)
returns text
language sql
as $read$
  select to_char(aivedio._read_time(p_value, aivedio._clock()) at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US');
$read$;

set local timezone = 'Asia/Tokyo';
select is(pg_temp.read(given.value), given.expected, given.why)
from (values
  ('"2026-06-24T03:09:00Z"'::jsonb, '2026-06-24 03:09:00.000000', 'ISO 8601 in UTC'),
  ('"2026-06-24T03:09:00.224088Z"', '2026-06-24 03:09:00.224088', 'with a fraction'),
  ('"2026-06-24T11:09:00+08:00"', '2026-06-24 03:09:00.000000', 'with an offset'),
  ('"2026-06-24T11:09:00+0800"', '2026-06-24 03:09:00.000000', 'with an offset without a colon'),
  ('"2026-06-24 03:09:00"', '2026-06-24 03:09:00.000000', 'no zone means UTC, whatever the session''s'),
  ('1782270540', '2026-06-24 03:09:00.000000', 'Unix seconds'),
  ('1782270540.5', '2026-06-24 03:09:00.500000', 'Unix seconds with a fraction'),
  ('1782270540000', '2026-06-24 03:09:00.000000', 'milliseconds'),
  ('1782270540000000', '2026-06-24 03:09:00.000000', 'microseconds'),
  ('"1782270540"', '2026-06-24 03:09:00.000000', 'seconds in a string'),
  ('"1970-01-01T00:00:00Z"', null, 'a clock of 1970 is none'),
  ('0', null, 'the epoch is none'),
  ('"2100-01-01T00:00:00Z"', null, 'a clock of 2100 is none'),
  ('"2026-02-30T00:00:00Z"', null, 'a day that does not exist is none'),
  ('"2026-06-24T25:61:00Z"', null, 'an hour that does not exist is none'),
  ('"2026-06-24T03:09:00+99:00"', null, 'a zone that does not exist is none'),
  ('"now"', null, 'a word that PostgreSQL would read is none'),
  ('"infinity"', null, 'nor is infinity'),
  ('"yesterday at noon"', null, 'nor are words'),
  ('9999999999999999', null, 'nor a number beyond all calendars'),
  ('true', null, 'nor a boolean'),
  ('{"seconds": 1782270540}', null, 'nor an object')
) as given (value, expected, why);

select finish();
rollback;
