/**
 * How the page tells whether it can be believed: the indicator at the top, the banner, and the
 * panel for those who are not signed in. The indicator changes at once; the banner waits a moment,
 * since a reconnect that takes a second is no news.
 */

import { duration } from './words.js';

const BANNER_AFTER = 2_000;

const PILL = {
  idle: 'Starting…', connecting: 'Connecting…', live: 'Live', syncing: 'Catching up…',
  reconnecting: 'Reconnecting…', interrupted: 'Interrupted', unauthorized: 'Signed out',
  forbidden: 'No access', ended: 'Ended', closed: 'Stopped',
};

/** What is shown instead of the jobs to those who may not see them. */
export const GATES = {
  unauthorized: {
    title: 'You are not signed in',
    text: 'Open the login link that “aivedio up” printed in its terminal. It works once. This page goes on by itself as soon as you are signed in.',
  },
  forbidden: {
    title: 'This project cannot be opened',
    text: 'It does not exist, or you are not one of its members.',
  },
};

const byId = (id) => document.getElementById(id);

export class Connection {
  #feed;
  #unprovenSince = null;
  #timer = null;

  constructor(feed) {
    this.#feed = feed;
    byId('banner-retry').addEventListener('click', () => feed.refresh());
    byId('gate-retry').addEventListener('click', () => feed.refresh());
  }

  update() {
    const { state, proven, problem, loaded } = this.#feed.status;
    byId('pill').dataset.state = state;
    write('pill-text', PILL[state]);

    const gate = GATES[state];
    byId('gate').hidden = gate === undefined;
    byId('gate-retry').hidden = gate === undefined;
    if (gate !== undefined) {
      write('gate-title', gate.title);
      write('gate-text', gate.text);
      write('gate-detail', describe(problem));
    }
    byId('composer').hidden = gate !== undefined;
    byId('jobs').hidden = gate !== undefined && !loaded;
    byId('skeleton').hidden = loaded || gate !== undefined;

    if (proven) this.#unprovenSince = null;
    else this.#unprovenSince ??= Date.now();
    clearTimeout(this.#timer);
    if (!proven) this.#timer = setTimeout(() => this.tick(), BANNER_AFTER);
    this.tick();
  }

  /** Says again how old what is shown is; called once a second. */
  tick() {
    const { state, proven, asOf, problem, failures } = this.#feed.status;
    const waited = this.#unprovenSince !== null && Date.now() - this.#unprovenSince >= BANNER_AFTER;
    const visible = !proven && waited && GATES[state] === undefined;
    byId('banner').hidden = !visible;
    if (!visible) return;
    if (asOf === null) {
      write('banner-text', failures > 0 ? 'The jobs cannot be loaded. Trying again…' : 'Connecting takes longer than usual…');
      write('banner-age', '');
    } else {
      write('banner-text', state === 'ended' ? 'The server has ended the updates' : 'Realtime updates interrupted');
      write('banner-age', `, showing a snapshot from ${seconds(Date.now() - asOf)} ago.`);
    }
    write('banner-why', describe(problem));
  }
}

function seconds(ms) {
  if (ms >= 120_000) return duration(ms);
  const whole = Math.max(0, Math.round(ms / 1000));
  return `${whole} second${whole === 1 ? '' : 's'}`;
}

function describe(problem) {
  if (problem === null) return '';
  return problem.traceId ? `${problem.detail} (trace ${problem.traceId})` : problem.detail;
}

/** A live region speaks when its text is written, even with the same text. */
function write(id, text) {
  const element = byId(id);
  if (element.textContent !== text) element.textContent = text;
}
