/** What the database's words mean, for people. */

export const words = (text) => String(text).replaceAll('_', ' ');

/** Why a job waits: the words of why_waiting. */
export const REASONS = {
  over: 'It is over and will not move any more.',
  application_submits: 'Its application is to submit it.',
  submission_due: 'A submit process will send it now.',
  submission_delayed: 'The provider turned it away; it is sent again later.',
  submission_in_flight: 'A submit process waits for the provider’s answer.',
  submission_unknown: 'Nobody knows whether the provider has it. It is never sent twice by itself.',
  circuit_open: 'Its credential may not be used for now.',
  quota_empty: 'It may not be polled now: a bucket is empty, or waits after a refusal.',
  poll_scheduled: 'It will be polled later; a callback may come before.',
  poll_due: 'A poll process will ask now.',
  poll_in_flight: 'A poll process waits for the provider’s answer.',
  callback_only: 'It cannot be polled: a callback must come.',
  cancel_in_flight: 'The provider is being told to cancel.',
  media_unopened: 'The media consumer has not heard of its success.',
  media_waiting: 'A media operation waits for a worker.',
  media_running: 'A media worker is at it.',
  overdue: 'Its deadline has passed.',
  case_open: 'Somebody should look at a case of it.',
};

export const CASES = {
  conflict: 'The provider told two different ends. The first one stands.',
  stale_success: 'An attempt that was given up or replaced runs, or succeeded, after all: it costs.',
  submit_unknown: 'Nobody knows whether the provider took the submission.',
  lost_submit: 'A submission got no answer.',
  overdue: 'The deadline has passed without an end.',
  orphan: 'A callback names no attempt of ours.',
  mapping: 'A callback names two different attempts.',
  billing: 'Credits cannot be booked by the rules.',
  not_found: 'The provider does not know the job.',
};

export const RESOLUTIONS = {
  kept: { label: 'Keep', text: 'What is recorded stands. The cost is accepted, the callback let go; an overdue attempt gets its time once more.' },
  failed: { label: 'Fail', text: 'The job fails with a public code. It can be started again afterwards.' },
  adopted: { label: 'Adopt', text: 'The job goes on with this attempt’s result, as if it were the current one.' },
};

export const ALARMS = {
  attempt_overdue: 'Jobs of this provider are past their deadline. Each has a case.',
  bus_late: 'A consumer group is behind. Does its process run?',
  callback_coverage: 'Fewer ends than usual are told by callbacks. Polls stand in, at the cost of quota.',
  callback_mapping: 'The clues of a callback name different attempts. There is a case.',
  callback_orphan: 'Callbacks name no job of ours, again and again: somebody else’s, or one that was never recorded.',
  callback_poison: 'Callbacks could not be processed and ended dead. Rehearse one to see why.',
  callback_unusable: 'A signed callback was no usable JSON.',
  cancel_given_up: 'A cancellation did not reach the provider. The job goes on there.',
  circuit_open: 'Too many requests to this provider failed in a row. It is asked again, one at a time.',
  credential_refused: 'The provider refuses our key. Polls and submissions with it wait until it works.',
  dead_letter: 'A consumer gave messages up. Deliver them again once the cause is gone.',
  inbox_late: 'Callbacks wait for more than a minute. Does an inbox process run?',
  media_failed: 'A video was generated and could not be prepared.',
  media_rescue: 'The provider is about to delete an output that is not fetched yet.',
  outbox_late: 'Messages wait for more than a minute. Do relay and bus run?',
  outbox_parked: 'A message could not be sent and was set aside.',
  partition_kept: 'Old rows stay because something still needs them.',
  partitions_low: 'Partitions run out. Does upkeep run?',
  poll_malformed: 'The provider’s answers cannot be understood. Its profile may be out of date.',
  poll_refused: 'The provider refuses to be asked. Its profile may be out of date.',
  poll_not_found: 'The provider does not know jobs that it accepted.',
  provider_not_configured: 'A secret of this provider is missing where submissions are made.',
  provider_status_unknown: 'Polls failed too often in a row: nobody knows where these jobs are.',
  restored: 'The database was restored: every browser takes a new snapshot.',
  signature_failures: 'Callbacks with wrong signatures: a rotated secret, or somebody else.',
  snapshot_held: 'A transaction is older than two minutes. Queues slow down while it lasts.',
  stream_broken: 'A project’s events do not continue each other. This must not happen: look before anything else.',
  submit_unknown: 'Submissions got no answer. Each has a case.',
  unknown_word: 'The provider uses a word that its profile does not know. Jobs go on being polled.',
  version_twice: 'Two events tell the same version of a job. This must not happen: look before anything else.',
};

/** How a job's status looks: the colours of the page of jobs. */
export function tone(status) {
  if (status === 'ready') return 'good';
  if (status === 'failed') return 'bad';
  if (status === 'provider_status_unknown' || status === 'cancel_requested') return 'warn';
  return status === 'canceled' || status === 'created' ? 'calm' : 'busy';
}
