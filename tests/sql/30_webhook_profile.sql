-- Stage 30: how callbacks are signed and answered is data; what the edge could not use, or should not trust, is refused.
begin;
\ir support/fixtures.sql
select plan(42);

create function pg_temp.problems(p_webhook jsonb, p_local boolean default false)
returns text
language sql
as $problems$
  select array_to_string(aivedio._access_problems(jsonb_build_object(
    'base_url', 'https://api.lumen.example', 'auth', '{"kind": "none"}'::jsonb, 'local', p_local, 'webhook', p_webhook
  )), '; ');
$problems$;

create function pg_temp.signed(p_more text)
returns jsonb
language sql
as $signed$
  select '{"secrets": [{"ref": "env:KEY", "version": "current"}]}'::jsonb || p_more::jsonb;
$signed$;

-- Each scheme with what it needs.
select is(pg_temp.problems(given.webhook), '', given.webhook ->> 'scheme' || ' is known')
from (values
  (pg_temp.signed('{"scheme": "standard-webhooks-v1", "event_id_header": "webhook-id"}')),
  (pg_temp.signed('{"scheme": "standard-webhooks-v1", "header_prefix": "svix", "event_id_header": "Svix-Id"}')),
  (pg_temp.signed('{"scheme": "standard-webhooks-v1", "secret_format": "by_prefix", "thin": true}')),
  (pg_temp.signed('{"scheme": "standard-webhooks-v1a"}')),
  (pg_temp.signed('{"scheme": "t-v1-hex", "signature_header": "mux-signature", "event_id": "$.id"}')),
  (pg_temp.signed('{"scheme": "time-sig1-hex"}')),
  (pg_temp.signed('{"scheme": "github-sha256-hex"}')),
  (pg_temp.signed('{"scheme": "heygen-hex-body"}')),
  (pg_temp.signed('{"scheme": "synthesia-hex", "acknowledge": {"status": 200, "body": "ok"}}')),
  (pg_temp.signed('{"scheme": "hmac-hex", "signature_header": "x-sig", "content": "{body}"}')),
  (pg_temp.signed('{"scheme": "hmac-base64", "signature_header": "x-sig", "timestamp_header": "x-ts", "content": "{header:x-id}.{timestamp}.{body}", "event_id_header": "X-Id"}')),
  (pg_temp.signed('{"scheme": "vidu-hmac"}')),
  ('{"scheme": "fal-ed25519", "jwks_url": "https://keys.lumen.example/.well-known/jwks.json"}'::jsonb),
  ('{"scheme": "gemini-dynamic-jwt", "jwks_url": "https://keys.lumen.example/jwks.json", "audience": "env:AUDIENCE"}'::jsonb),
  ('{"signed": false, "challenge": "challenge", "acknowledge": {"status": 200}}'::jsonb)
) as given (webhook);
select is(
  pg_temp.problems('{"scheme": "fal-ed25519", "jwks_url": "http://127.0.0.1:9/jwks.json"}', true), '',
  'keys come over plain http where the profile is local'
);

-- An event id that the signature does not cover identifies nothing.
select is(
  pg_temp.problems(pg_temp.signed(given.webhook)), 'webhook.event_id_header: the signature does not cover it, so anybody could choose it', given.what
)
from (values
  ('{"scheme": "standard-webhooks-v1", "event_id_header": "x-event-id"}', 'a header beside the signed ones is no event id'),
  ('{"scheme": "standard-webhooks-v1", "header_prefix": "svix", "event_id_header": "webhook-id"}', 'nor one of another prefix'),
  ('{"scheme": "heygen-hex-body", "event_id_header": "heygen-event-id"}', 'HeyGen signs the body alone'),
  ('{"scheme": "github-sha256-hex", "event_id_header": "x-github-delivery"}', 'and so does GitHub'),
  ('{"scheme": "t-v1-hex", "signature_header": "mux-signature", "event_id_header": "mux-signature"}', 'a signature does not sign itself'),
  ('{"scheme": "hmac-hex", "signature_header": "x-sig", "content": "{body}", "event_id_header": "x-id"}', 'a template covers what stands in it')
) as given (webhook, what);
select is(
  pg_temp.problems(pg_temp.signed('{"scheme": "vidu-hmac", "event_id": "$.id"}')),
  'webhook.event_id: the signature does not cover the body, so its callbacks are hints without an id',
  'an unsigned body has no event id'
);

-- Mistakes.
select is(pg_temp.problems(given.webhook), given.expected, given.expected)
from (values
  (pg_temp.signed('{}'), 'webhook.scheme: how callbacks are signed'),
  (pg_temp.signed('{"scheme": "standard-webhooks-v1", "signature_headers": "x"}'), 'webhook.signature_headers: no such key'),
  (pg_temp.signed('{"scheme": "t-v1-hex"}'), 'webhook.signature_header: the header that holds the signature'),
  (pg_temp.signed('{"scheme": "t-v1-hex", "signature_header": "a b"}'), 'webhook.signature_header: the name of a header'),
  (pg_temp.signed('{"scheme": "hmac-hex", "signature_header": "s"}'), 'webhook.content: what is signed, such as {timestamp}.{body}'),
  (pg_temp.signed('{"scheme": "hmac-hex", "signature_header": "s", "content": "{boody}"}'), 'webhook.content: text with {body}, {timestamp} and {header:NAME}'),
  (pg_temp.signed('{"scheme": "hmac-hex", "signature_header": "s", "content": "{timestamp}.{body}"}'), 'webhook.timestamp_header: the header that holds the timestamp'),
  (pg_temp.signed('{"scheme": "standard-webhooks-v1", "secret_format": "hex"}'), 'webhook.secret_format: raw, base64 or by_prefix'),
  ('{"scheme": "fal-ed25519"}', 'webhook.jwks_url: where the provider publishes its keys'),
  ('{"scheme": "fal-ed25519", "jwks_url": "http://keys.lumen.example/jwks.json"}', 'webhook.jwks_url: https, unless the profile is local'),
  ('{"scheme": "fal-ed25519", "jwks_url": "https://user@keys.lumen.example/"}', 'webhook.jwks_url: where the provider publishes its keys'),
  ('{"scheme": "gemini-dynamic-jwt", "jwks_url": "https://k.example/j"}', 'webhook.audience: a reference, env:NAME or file:/path'),
  ('{"signed": false, "acknowledge": "ok"}', 'webhook.acknowledge: {"status": 204, "body": null}, or what the provider wants'),
  ('{"signed": false, "acknowledge": {"status": 302}}', 'webhook.acknowledge.status: 200, 201, 202 or 204'),
  ('{"signed": false, "acknowledge": {"status": 204, "body": "ok"}}', 'webhook.acknowledge.body: an answer 204 has none'),
  ('{"signed": false, "challenge": "$.challenge"}', 'webhook.challenge: the name of the member that is echoed')
) as given (webhook, expected);
select matches(pg_temp.problems(pg_temp.signed('{"scheme": "rot13"}')), '^webhook.scheme: one of {standard-webhooks-v1,', 'the known schemes are named');

-- Whatever a profile says that came in another way, an uncovered header makes no key.
select fixture.task();
select fixture.attempt(p_token => 'secret');
create function pg_temp.key_under(p_event_id_header text)
returns text
language sql
as $key_under$
  select aivedio._callback_event(
    row(
      0, 'replicate', '{"webhook-id": "m1", "x-event-id": "chosen"}', '{}', '\x00', 'current', true, null, null, null
    )::aivedio.received_callback,
    '{}', jsonb_build_object('webhook', pg_temp.signed('{"scheme": "standard-webhooks-v1"}') || jsonb_build_object('event_id_header', p_event_id_header))
  );
$key_under$;
select is(pg_temp.key_under('Webhook-Id'), 'm1', 'a covered header is the event id');
select is(pg_temp.key_under('x-event-id'), null, 'an uncovered one is not');

select finish();
rollback;
