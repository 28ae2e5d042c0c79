/** What waits for a decision, providers, and what was done. */

import { look } from './api.js';
import { ask, rehearse } from './dialog.js';
import { ago, byId, count, facts, h, number, short, show, taskLink } from './dom.js';
import { ALARMS, CASES, RESOLUTIONS, words } from './words.js';

const may = { act: false };
export function mayAct(yes) {
  may.act = yes;
}

const button = (text, onclick, danger = false) =>
  may.act && h(danger ? 'button.button.small.danger' : 'button.button.small', { type: 'button', onclick }, text);

// The server lists no more of a kind.
const MOST = 50;
const empty = new Set();

/** Draw a list into its section. Those that are empty share one line. */
function list(id, title, rows, draw) {
  byId(id).hidden = rows.length === 0;
  if (rows.length === 0) empty.add(title.toLowerCase());
  else empty.delete(title.toLowerCase());
  byId('nothing').hidden = empty.size === 0;
  show(byId('nothing'), [...empty], () => [`No ${[...empty].join(', no ')}.`]);
  show(byId(id), [rows, may.act], () => [
    h('div.heading', {}, h('h2', {}, title), h('p.faint', {}, rows.length >= MOST ? `the newest ${number(rows.length)}` : number(rows.length))),
    h('ul.rows', {}, rows.map(draw)),
  ]);
}

const row = ({ tone, title, meta, text, more, buttons }) =>
  h('li.row-item', { data: { tone } },
    h('div.row-main', {},
      h('p.row-title', {}, title),
      h('p.meta', {}, meta.filter(Boolean).map((each) => h('span', {}, each))),
      text && h('p.row-text', {}, text), more),
    h('div.row-side', {}, buttons));

export function alarms(rows) {
  list('alarms', 'Alarms', rows, (alarm) => row({
    tone: 'warn',
    title: [words(alarm.kind), ' ', h('code', {}, alarm.subject)],
    meta: [count(alarm.count, 'time'), h('span', {}, 'last ', ago(alarm.last_at)), h('span', {}, 'since ', ago(alarm.first_at))],
    text: ALARMS[alarm.kind],
    more: facts(alarm.detail),
    buttons: button('Resolve…', () => ask({
      title: `Resolve the alarm ${words(alarm.kind)}`,
      text: 'It is closed; the next occurrence opens a new one.',
      name: 'resolve_alarm', body: { kind: alarm.kind, subject: alarm.subject }, verb: 'Resolve',
    })),
  }));
}

export function caseRow(known) {
  return row({
    tone: 'warn',
    title: [words(known.kind), known.provider && [' ', h('code', {}, known.provider)]],
    meta: [known.task_id ? taskLink(known.task_id) : h('code', {}, known.subject), h('span', {}, 'opened ', ago(known.opened_at)),
      known.evidence.length > 1 && h('span', {}, 'last news ', ago(known.last_at))],
    text: CASES[known.kind],
    more: h('ul.evidence', {}, known.evidence.slice(-3).map((fact) => h('li', {}, facts(fact)))),
    buttons: known.resolutions.map((resolution) => button(`${RESOLUTIONS[resolution].label}…`, () => ask({
      title: `${RESOLUTIONS[resolution].label}: ${words(known.kind)}`,
      text: RESOLUTIONS[resolution].text,
      ...(resolution === 'adopted'
        ? { name: 'adopt_attempt', body: { task: known.task_id, attempt: known.attempt_id } }
        : { name: 'resolve_case', body: { case: known.id, resolution } }),
      verb: RESOLUTIONS[resolution].label, danger: resolution === 'failed',
    }), resolution === 'failed')),
  });
}

export const cases = (rows) => list('cases', 'Cases', rows, caseRow);

/** Rehearse a callback, and apply it if that is what is wanted. */
export const tryCallback = (id) => rehearse(id, (told) => ask({
  title: `Apply callback ${id}`,
  text: `It is judged now, as ${words(told.verdict ?? told.status)}.`,
  name: 'replay_callback', body: { callback: id }, verb: 'Apply',
}));

export function callbacks(rows) {
  list('callbacks', 'Dead callbacks', rows, (callback) => row({
    tone: 'bad',
    title: [h('code', {}, callback.provider), ` callback ${callback.id}: `, h('b', {}, callback.error ?? 'dead')],
    meta: [callback.task_id ? taskLink(callback.task_id) : 'names no job of ours', h('span', {}, 'received ', ago(callback.received_at)),
      count(callback.tries, 'repeat'), callback.provider_task_id && h('span', {}, 'provider’s id ', short(callback.provider_task_id))],
    text: !callback.replayable && 'Its payload is gone.',
    buttons: callback.replayable && [
      button('Rehearse', () => tryCallback(callback.id)),
      button('Requeue…', () => ask({
        title: `Requeue callback ${callback.id}`, text: 'An inbox worker tries it again, from the first try on.',
        name: 'requeue_callback', body: { callback: callback.id }, verb: 'Requeue',
      })),
    ],
  }));
}

export function parked(rows) {
  list('parked', 'Parked messages', rows, (message) => row({
    tone: 'bad',
    title: [`message ${message.id}: `, h('b', {}, message.error ?? 'parked')],
    meta: [taskLink(message.task_id), `version ${message.version}, ${words(message.status ?? '')}`, count(message.tries, 'try', 'tries'), ago(message.created_at)],
    buttons: button('Send again…', () => ask({
      title: `Send message ${message.id} again`, text: 'The relay tries it again. Consumers judge by what they have, so a late message does no harm.',
      name: 'requeue_outbox', body: { message: message.id }, verb: 'Send again',
    })),
  }));
}

export function letters(bus) {
  const rows = Object.entries(bus).filter(([, group]) => group.dead > 0).map(([name, { dead, oldest_dead_s: age }]) => [name, dead, Math.round(age / 60)]);
  list('letters', 'Dead letters', rows, ([name, dead]) => {
    const more = h('ul.evidence');
    return row({
      tone: 'bad',
      title: [count(dead, 'message'), ' of group ', h('code', {}, name)],
      meta: [h('button.link', { type: 'button', onclick: () => showLetters(name, more) }, 'show them')],
      text: 'A consumer gave them up.',
      more,
      buttons: [
        button('Deliver again…', () => ask({
          title: `Deliver the dead letters of ${name} again`, text: 'They come behind what waits already.',
          name: 'requeue_dead_letters', body: { group: name, letters: null }, verb: 'Deliver again',
        })),
        button('Purge…', () => ask({
          title: `Throw away the dead letters of ${name}`, text: 'They are gone for good. What they told is still in the database.',
          name: 'purge_dead_letters', body: { group: name, before: null }, verb: 'Throw away', danger: true,
        }), true),
      ],
    });
  });
}

async function showLetters(group, into) {
  try {
    const { letters: found } = await look(`letters/${encodeURIComponent(group)}`);
    into.replaceChildren(...found.slice(0, 20).map((letter) => h('li', {},
      letter.task_id && taskLink(letter.task_id), facts(letter, ['task_id', 'id']))));
  } catch (problem) {
    into.replaceChildren(h('li.trouble', {}, problem.message));
  }
}

export function actions(rows) {
  const section = byId('actions');
  section.hidden = false;
  show(section, rows, () => [
    h('div.heading', {}, h('h2', {}, 'Done by hand'), h('p.faint', {}, rows.length === 0 ? 'nothing yet' : 'the latest first')),
    rows.length > 0 && h('ul.done', {}, rows.slice(0, 12).map((each) => h('li', {},
      ago(each.at), ' ', h('b', {}, each.actor), ` ${words(each.action)} `, h('code', { title: each.subject }, each.subject), ' ', h('q', {}, each.reason)))),
  ].filter(Boolean));
}
