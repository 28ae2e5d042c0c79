/** The path of a job with live numbers, and the one sentence that says how it all is. */

import { byId, count, h, number, show, span } from './dom.js';
import { Trend } from './trend.js';
import { words } from './words.js';

const LATE_S = 60;
const sum = (values) => values.reduce((total, value) => total + value, 0);
const late = (seconds) => (seconds > LATE_S ? 'warn' : '');
const oldest = (seconds) => (seconds === null || seconds === undefined ? null : `oldest ${span(Number(seconds))}`);

/** Each stage: how many wait there, and what else is worth a line. */
const STAGES = [
  {
    name: 'Submit',
    help: 'New attempts that are to be sent to a provider',
    read: (all) => ({ value: all.submits_due, unit: 'due', lines: [circuits(all)] }),
  },
  {
    name: 'Poll',
    help: 'Attempts whose provider is to be asked now',
    read: (all) => ({
      value: all.polls.due,
      unit: 'due',
      lines: [
        [`${number(all.polls.scheduled)} scheduled`],
        all.quotas_blocked > 0 && [count(all.quotas_blocked, 'quota blocked', 'quotas blocked'), 'warn'],
      ],
    }),
  },
  {
    name: 'Inbox',
    help: 'Callbacks that are stored and not applied yet',
    read: (all) => ({
      value: all.inbox.pending + all.inbox.retry,
      unit: 'waiting',
      lines: [
        all.inbox.oldest_s !== null && [oldest(all.inbox.oldest_s), late(all.inbox.oldest_s)],
        all.inbox.retry > 0 && [`${number(all.inbox.retry)} tried before`],
        all.inbox_dead > 0 && [`${number(all.inbox_dead)} dead`, 'bad', '#/callbacks'],
      ],
    }),
  },
  {
    name: 'Jobs',
    help: 'Jobs that are under way',
    read: (all) => ({
      value: sum(Object.values(all.tasks)),
      unit: 'under way',
      lines: [
        all.tasks.provider_status_unknown > 0 && [`${number(all.tasks.provider_status_unknown)} unknown`, 'warn'],
        sum(Object.values(all.cases)) > 0 && [count(sum(Object.values(all.cases)), 'open case'), 'warn', '#/cases'],
      ],
    }),
  },
  {
    name: 'Outbox',
    help: 'Changes that the bus has yet to acknowledge',
    read: (all) => ({
      value: all.outbox.pending,
      unit: 'to send',
      lines: [
        all.outbox.oldest_s !== null && [oldest(all.outbox.oldest_s), late(all.outbox.oldest_s)],
        all.outbox_parked > 0 && [`${number(all.outbox_parked)} parked`, 'bad', '#/parked'],
      ],
    }),
  },
  {
    name: 'Bus',
    help: 'Messages that a consumer group has yet to handle',
    read: (all) => {
      const groups = Object.entries(all.bus);
      return {
        value: sum(groups.map(([, group]) => group.waiting + group.hidden)),
        unit: 'on the way',
        lines:
          groups.length === 0
            ? [['outside of this database']]
            : groups.map(([name, group]) => [
                `${name} ${number(group.waiting + group.hidden)}${group.dead > 0 ? `, ${number(group.dead)} dead` : ''}`,
                group.dead > 0 ? 'bad' : late(group.oldest_s),
                group.dead > 0 ? '#/letters' : null,
              ]),
      };
    },
  },
  {
    name: 'Media',
    help: 'Operations of the media plane that are waiting or running',
    read: (all) => ({
      value: sum(Object.values(all.media)),
      unit: 'open',
      lines: Object.entries(all.media).map(([type, open]) => [`${type} ${number(open)}`]),
    }),
  },
];

function circuits(all) {
  const open = Object.entries(all.circuits);
  return open.length > 0 && [count(open.length, 'circuit open', 'circuits open'), 'bad', '#/providers'];
}

/** What needs somebody, worst first: [text, tone, where]. */
export function findings(all) {
  const found = [];
  const note = (number_, tone, where, one, many) => number_ > 0 && found.push([count(number_, one, many), tone, where]);
  note(Object.keys(all.circuits).length, 'bad', '#/providers', 'circuit is open', 'circuits are open');
  note(all.inbox_dead, 'bad', '#/callbacks', 'dead callback');
  note(all.outbox_parked, 'bad', '#/parked', 'parked message');
  note(sum(Object.values(all.bus).map((group) => group.dead)), 'bad', '#/letters', 'dead letter');
  note(all.alarms, 'warn', '#/alarms', 'open alarm');
  note(sum(Object.values(all.cases)), 'warn', '#/cases', 'open case');
  note(all.quotas_blocked, 'warn', '#/providers', 'quota waits after a refusal', 'quotas wait after refusals');
  const waits = [['callbacks', all.inbox], ['messages', all.outbox], ...Object.entries(all.bus)];
  for (const [name, queue] of waits) {
    if (queue.oldest_s > LATE_S) found.push([`${name} wait for ${span(Number(queue.oldest_s))}`, 'warn', null]);
  }
  return found;
}

export class Pipeline {
  #said = '';
  #cells = STAGES.map((stage) => {
    const cell = {
      stage,
      trend: new Trend(),
      value: h('span.value'),
      unit: h('span.unit'),
      lines: h('ul.lines'),
      svg: document.createElementNS('http://www.w3.org/2000/svg', 'svg'),
    };
    cell.svg.setAttribute('class', 'trend');
    cell.svg.setAttribute('aria-hidden', 'true');
    cell.element = h('li.stage', { title: stage.help },
      h('h3', {}, stage.name), h('p.figure', {}, cell.value, ' ', cell.unit), cell.lines, cell.svg);
    return cell;
  });

  constructor() {
    byId('path').replaceChildren(...this.#cells.map((cell) => cell.element));
  }

  draw(all) {
    const at = Date.parse(all.at);
    for (const cell of this.#cells) {
      const { value, unit, lines } = cell.stage.read(all);
      const kept = lines.filter(Boolean);
      cell.trend.push(at, value);
      cell.trend.draw(cell.svg);
      cell.value.textContent = number(value);
      cell.unit.textContent = unit;
      const worst = kept.find(([, tone]) => tone === 'bad') ?? kept.find(([, tone]) => tone === 'warn');
      cell.element.dataset.tone = worst?.[1] ?? (value > 0 ? 'busy' : 'calm');
      show(cell.lines, kept, () =>
        kept.map(([text, tone, where]) => h('li', { data: { tone: tone || 'calm' } }, where ? h('a', { href: where }, text) : text)));
    }
    this.#verdict(all);
    const states = Object.entries(all.tasks).sort(([, one], [, two]) => two - one);
    show(byId('underway'), states, () => states.map(([status, jobs]) => h('span', {}, h('b', {}, number(jobs)), ` ${words(status)}`)));
  }

  #verdict(all) {
    const found = findings(all);
    const jobs = sum(Object.values(all.tasks));
    const tone = found.some(([, each]) => each === 'bad') ? 'bad' : found.length > 0 ? 'warn' : 'good';
    byId('verdict').dataset.tone = tone;
    const headline = found.length === 0 ? 'All is well' : found.length === 1 ? 'One thing to look at' : `${found.length} things to look at`;
    document.title = `${found.length > 0 ? `(${found.length}) ` : ''}AiVedio operations`;
    if (this.#said !== headline) byId('news').textContent = this.#said = headline;
    const text = jobs === 0 ? 'No job is under way.' : `${count(jobs, 'job is', 'jobs are')} under way.`;
    show(byId('verdict'), [found, found.length === 0 && text], () =>
      found.length === 0
        ? [h('h2', {}, headline), h('p', {}, `${text} Nothing waits for longer than a minute, and nothing waits for you.`)]
        : [
            h('h2', {}, headline),
            h('p.chips', {}, found.map(([what, each, where]) =>
              where ? h('a.chip', { href: where, data: { tone: each } }, what) : h('span.chip', { data: { tone: each } }, what))),
          ]);
  }
}
