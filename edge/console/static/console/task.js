/** One job: why it is where it is, and all that is recorded of it as one timeline. */

import { look } from './api.js';
import { ask } from './dialog.js';
import { ago, byId, clock, count, facts, h, number, short, show, span } from './dom.js';
import { caseRow, tryCallback } from './lists.js';
import { REASONS, tone, words } from './words.js';

const FAULTS = new Set(['conflict', 'dead', 'parked', 'unknown', 'rejected', 'failed', 'orphan']);
const ODD = new Set(['duplicate', 'coalesced', 'stale_attempt', 'stale_sequence', 'stale_status', 'after_terminal', 'unknown_word', 'hint', 'repeated', 'retry', 'canceled', 'withdrawn']);
const RESTARTABLE = new Set(['failed', 'canceled', 'provider_status_unknown']);
// Of each kind of entry a history holds so many.
const MOST = 300;
const hidden = new Set();
// What is so when nothing is odd, and what the sentences of others tell.
const USUAL = { tries: 0, signed: true, key_version: 'current', unchanged: 0, throttled: 0, malformed: 0, failures_now: 0 };
const ELSEWHERE = ['prev_event_id', 'shard', 'processed_at', 'submitted_by'];

/** What an entry says in one line; what it has used, so that the rest is shown as facts. */
const SENTENCES = {
  task: () => ['Job created', []],
  attempt: ({ what, detail }) =>
    what === 'created'
      ? [`Attempt made${detail.started_by ? ` by ${detail.started_by}` : ''}`, ['started_by', 'provider', 'model']]
      : [`Attempt ${words(what)}${detail.seen_by?.length ? `, told by ${detail.seen_by.join(' and ')}` : ''}`, ['seen_by']],
  submission: ({ what, detail }) => [`Submission ${words(what)}${detail.provider_task_id ? ` as ${detail.provider_task_id}` : ''}`, ['provider_task_id']],
  callback: ({ what, detail }) =>
    what === 'repeated'
      ? [`${number(detail.times)} ${detail.times === 1 ? 'callback' : 'callbacks'} told nothing new`, ['times']]
      : [`Callback ${detail.callback} ${what === 'done' ? `judged ${words(detail.verdict)}` : `${words(what)}${detail.error ? `: ${detail.error}` : ''}`}`, ['callback', 'verdict', 'error']],
  observation: ({ what, detail }) => [
    `${detail.source} says ${words(detail.status ?? detail.word ?? 'nothing')}${detail.progress !== undefined ? ` ${detail.progress} %` : ''}: ${words(what)}`,
    ['source', 'status', 'progress', 'event_id', 'version'],
  ],
  polls: ({ detail }) => [`Polled ${number(detail.times)} ${detail.times === 1 ? 'time' : 'times'}, the last one here`, ['times']],
  cancel: ({ what }) => [`Cancellation ${words(what)}`, []],
  event: ({ what, detail }) => [
    `Event ${detail.event_id}: version ${detail.version} is ${words(what === 'processing_media' ? detail.stage : what)}${typeof detail.progress === 'number' ? ` ${detail.progress} %` : ''}, by ${detail.source}`,
    ['event_id', 'version', 'stage', 'progress', 'source'],
  ],
  outbox: ({ what, detail }) => [
    what === 'published' ? `Version ${detail.version} sent to the bus after ${span(detail.waited_s)}` : `Version ${detail.version} ${what === 'parked' ? 'parked' : 'waits to be sent'}`,
    ['version', 'waited_s', 'outbox'],
  ],
  media: ({ what, detail }) => [`${detail.operation} ${words(what)}${what === 'running' ? ` ${detail.progress} %` : ''}`, ['operation', 'progress']],
  credit: ({ what, detail }) => [`${count(detail.amount, 'credit')}: ${words(what)}`, ['amount', 'event_id']],
  case: ({ what, detail }) => [`Case ${words(detail.kind)} ${what}${detail.resolution ? ` as ${detail.resolution}` : ''}`, ['kind', 'resolution']],
  action: ({ what, detail }) => [`${detail.by}: ${words(what)}`, ['by']],
};

export async function load(id) {
  const [told, open] = await Promise.all([look(`tasks/${encodeURIComponent(id)}`), look('cases')]);
  return { ...told, cases: open.cases.filter((known) => known.task_id === id) };
}

export function draw(told, mayAct) {
  const { id, why, history, cases } = told;
  show(byId('task'), [why, history, cases, mayAct, [...hidden]], () => [
    h('section.card.job-card', {},
      h('div.job-line', {},
        h('h2', {}, 'Job ', h('code', {}, id)),
        h('p.badge', { data: { tone: tone(why.task.status) } }, h('span.dot', { 'aria-hidden': 'true' }), words(why.task.status === 'processing_media' ? why.task.stage : why.task.status))),
      h('p.meta', {}, [
        why.attempt.provider && h('span', {}, `${why.attempt.provider} ${why.attempt.model}`),
        why.attempt.no && h('span', {}, `attempt ${why.attempt.no}`),
        h('span', {}, `version ${why.task.version}`),
        h('span', {}, 'changed ', ago(why.task.updated_at)),
        why.task.error_code && h('span', {}, `error ${why.task.error_code}`),
      ].filter(Boolean)),
      h('ul.reasons', { 'aria-label': 'Why it is where it is' }, why.reasons.map((reason) => h('li', { data: { reason } }, REASONS[reason] ?? words(reason), ' ', h('code', {}, reason)))),
      standing(why),
      mayAct && buttons(id, why, history)),
    cases.length > 0 && h('section.card.list', {}, h('div.heading', {}, h('h2', {}, 'Open cases')), h('ul.rows', {}, cases.map(caseRow))),
    timeline(history, mayAct, () => draw(told, mayAct)),
  ].filter(Boolean));
}

/** Who holds it, and when something is due. */
function standing({ attempt, circuit, callbacks_waiting: waiting, outbox, operations }) {
  return facts({
    next_poll: attempt.next_poll_at,
    poll_held_by: attempt.poll_lease_until && attempt.poll_leased_by,
    submission_held_by: attempt.submit_state === 'sent' ? attempt.submit_leased_by : null,
    deadline: attempt.deadline_at,
    last_callback: attempt.last_callback_at,
    failed_polls_in_a_row: attempt.poll_failures || null,
    callbacks_waiting: waiting || null,
    messages_to_send: outbox?.waiting || null,
    circuit: circuit && circuit.state !== 'closed' ? `${circuit.state}, ${words(circuit.reason)}` : null,
    media: operations?.filter(({ status }) => status === 'pending' || status === 'running').map(({ type, status, leased_by: by }) => `${type} ${status}${by ? ` by ${by}` : ''}`).join(', '),
  });
}

/** So that a start that is sent twice is made once. Also without https, where randomUUID is missing. */
const newKey = () => `page-${[...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`;

function buttons(id, why, history) {
  const current = why.attempt.no;
  const old = history.filter((entry) => entry.kind === 'attempt' && entry.what === 'succeeded' && entry.attempt_no !== current);
  const made = (no) => history.find((entry) => entry.kind === 'attempt' && entry.what === 'created' && entry.attempt_no === no);
  const start = RESTARTABLE.has(why.task.status) || why.reasons.includes('overdue');
  if (!start && old.length === 0) return null;
  return h('div.row', {},
    start && h('button.button', { type: 'button', onclick: () => ask({
      title: 'Submit this job again', text: 'A new attempt is made and sent to the provider: it is generated, and may be billed, once more.',
      name: 'start_attempt', body: { task: id, key: newKey() }, verb: 'Start a new attempt', danger: true,
    }) }, 'Start a new attempt…'),
    old.map(({ attempt_no: no }) => h('button.button', { type: 'button', onclick: () => ask({
      title: `Adopt attempt ${no}`, text: 'The job goes on with its result, as if it were the current attempt.',
      name: 'adopt_attempt', body: { task: id, attempt: made(no)?.detail.attempt_id }, verb: 'Adopt',
    }) }, `Adopt attempt ${no}…`)));
}

function timeline(history, mayAct, redraw) {
  const kinds = [...new Set(history.map(({ kind }) => kind))];
  const shown = history.filter(({ kind }) => !hidden.has(kind));
  const full = kinds.some((kind) => history.filter((entry) => entry.kind === kind).length >= MOST);
  const toggle = (kind) => {
    if (!hidden.delete(kind)) hidden.add(kind);
    redraw();
  };
  let before = null;
  let day = null;
  const items = shown.flatMap((entry) => {
    const at = Date.parse(entry.at);
    const gap = before === null ? null : (at - before) / 1000;
    before = at;
    const today = new Date(at).toDateString();
    const line = item(entry, gap, mayAct);
    if (today === day) return [line];
    day = today;
    return [h('li.day', {}, new Date(at).toLocaleDateString(undefined, { dateStyle: 'full' })), line];
  });
  return h('section.card.history', { 'aria-labelledby': 'history-title' },
    h('div.heading', {}, h('h2', { id: 'history-title' }, 'History'), h('p.faint', {}, `${number(shown.length)} of ${number(history.length)} entries${full ? ', the newest of each kind' : ''}`)),
    h('div.kinds', { role: 'group', 'aria-label': 'Kinds of entries' }, kinds.map((kind) => h('button.kind', {
      type: 'button', data: { kind }, 'aria-pressed': String(!hidden.has(kind)), onclick: () => toggle(kind),
    }, `${kind} ${number(history.filter((entry) => entry.kind === kind).length)}`))),
    h('ol.timeline', {}, items));
}

function item(entry, gap, mayAct) {
  const [sentence, used] = SENTENCES[entry.kind]?.(entry) ?? [`${entry.kind} ${words(entry.what)}`, []];
  const mood = FAULTS.has(entry.what) ? 'bad' : ODD.has(entry.what) || entry.kind === 'case' ? 'warn' : 'calm';
  return h('li.entry', { data: { kind: entry.kind, what: entry.what, tone: mood } },
    h('time', { datetime: entry.at, title: entry.at }, clock(entry.at)),
    h('span.gap', {}, gap === null ? '' : gap < 0.0005 ? '·' : `+${span(gap)}`),
    h('span.mark', { 'aria-hidden': 'true' }),
    h('div.said', {},
      h('p', {}, h('span.sentence', {}, sentence), entry.attempt_no !== null && h('span.tag', {}, `attempt ${entry.attempt_no}`),
        h('span.tag.where', {}, entry.kind),
        mayAct && entry.kind === 'callback' && entry.what === 'dead' && h('button.link', { type: 'button', onclick: () => tryCallback(entry.detail.callback) }, 'rehearse')),
      facts(entry.detail, [...used, ...ELSEWHERE, ...Object.keys(USUAL).filter((name) => entry.detail[name] === USUAL[name])])));
}

/** The jobs that some words name. */
export function drawFound(query, tasks) {
  show(byId('found'), [query, tasks], () => [
    h('section.card.list', {},
      h('div.heading', {}, h('h2', {}, 'Jobs for ', h('code', {}, query)), h('p.faint', {}, tasks.length === 0 ? 'none' : number(tasks.length))),
      tasks.length === 0
        ? h('p', {}, 'Nothing has this id: no job, attempt or case, no request of ours or of a provider, no callback, event or message.')
        : h('ul.rows', {}, tasks.map((task) => h('li.row-item', {}, h('div.row-main', {},
            h('p.row-title', {}, h('a', { href: `#/task/${task.task_id}` }, 'Job ', short(task.task_id))),
            h('p.meta', {}, h('span', {}, words(task.status)), h('span', {}, `${task.provider} ${task.model}`), h('span', {}, 'made ', ago(task.created_at)), h('span', {}, `found as ${words(task.found_as)}`))))))),
  ]);
}
