/** Puts the page together: who looks, what they look at, and how fresh it is. */

import { look, Problem } from './console/api.js';
import { afterActions } from './console/dialog.js';
import { byId, clockIs, h, tick } from './console/dom.js';
import * as lists from './console/lists.js';
import { Pipeline } from './console/pipeline.js';
import { providers } from './console/providers.js';
import * as task from './console/task.js';

const PIPELINE_MS = 2000;
const LISTS_MS = 5000;
const PROVIDERS_MS = 15_000;
const SLOWEST_MS = 15_000;
const VIEWS = ['overview', 'found', 'task'];

let me = null;
let place = { view: 'overview' };
let failures = 0;
let wanted = new Set(['pipeline', 'lists', 'providers', 'place']);
let wake = () => {};
const mayAct = () => me?.role === 'act';

const pipeline = new Pipeline();

/** What is looked at again and again: how often, and where it is shown. */
const LOOKS = {
  pipeline: {
    every: PIPELINE_MS,
    async run() {
      const all = await look('pipeline');
      clockIs(all.at);
      pipeline.draw(all);
      lists.letters(all.bus);
    },
  },
  lists: {
    every: LISTS_MS,
    async run() {
      const [alarms, cases, callbacks, parked, actions] = await Promise.all(
        ['alarms', 'cases', 'callbacks', 'parked', 'actions'].map(look),
      );
      lists.alarms(alarms.alarms);
      lists.cases(cases.cases);
      lists.callbacks(callbacks.callbacks);
      lists.parked(parked.parked);
      lists.actions(actions.actions);
    },
  },
  providers: {
    every: PROVIDERS_MS,
    async run() {
      const [now, report] = await Promise.all([look('providers'), look('report').catch(tooSlow)]);
      providers(now.providers, report.today, mayAct());
    },
  },
  place: {
    every: LISTS_MS,
    async run() {
      const { view, id, query } = place;
      if (view === 'task') {
        const told = await task.load(id);
        if (place.id === id) task.draw(told, mayAct());
      } else if (view === 'found') {
        const { tasks } = await look(`tasks?${new URLSearchParams({ q: query })}`);
        if (tasks.length === 1 && place.query === query) location.replace(`#/task/${tasks[0].task_id}`);
        else task.drawFound(query, tasks);
      }
    },
  },
};
const lookedAt = {};

/** Of millions of jobs a day a report takes longer than a page may wait. */
function tooSlow(problem) {
  if (problem.status === 503) return { today: null };
  throw problem;
}

async function run() {
  for (;;) {
    if (document.visibilityState === 'visible') await round();
    const pause = failures > 0 ? Math.min(SLOWEST_MS, 1000 * 2 ** failures) : 500;
    await new Promise((go) => {
      wake = go;
      setTimeout(go, pause);
    });
  }
}

/** Look at all that is due. One failure ends the round, and is told. */
async function round() {
  const names = Object.keys(LOOKS).filter((name) =>
    wanted.has(name) || performance.now() - (lookedAt[name] ?? -Infinity) >= LOOKS[name].every);
  if (names.length === 0) return;
  try {
    if (me === null) await greet();
    for (const name of names) {
      wanted.delete(name);
      try {
        await LOOKS[name].run();
      } catch (problem) {
        if (problem.status !== 404 && problem.status !== 400) throw problem;
        missing(problem);
      }
      lookedAt[name] = performance.now();
    }
    failures = 0;
    connected();
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    failures += 1;
    for (const name of names) wanted.add(name);
    disconnected(problem);
  }
}

async function greet() {
  me = await look('me');
  lists.mayAct(mayAct());
  byId('who').textContent = me.who;
  byId('who').hidden = false;
  byId('search').hidden = false;
}

function connected() {
  byId('skeleton').hidden = true;
  byId('gate').hidden = true;
  byId('banner').hidden = true;
  for (const view of VIEWS) byId(view).hidden = view !== place.view;
  byId('pill').dataset.state = 'live';
  byId('pill-text').textContent = mayAct() ? 'Live' : 'Live, read only';
}

function disconnected(problem) {
  if (problem.status === 401 || problem.status === 403) {
    me = null;
    byId('skeleton').hidden = true;
    for (const view of VIEWS) byId(view).hidden = true;
    byId('gate').hidden = false;
    byId('gate-title').textContent = problem.status === 401 ? 'You are not signed in' : 'This page is for operators';
    byId('gate-text').textContent =
      problem.status === 401 ? 'Sessions last for eight hours, links work once.' : problem.message;
    pill('unauthorized', 'Signed out');
    return;
  }
  byId('banner').hidden = false;
  byId('banner-text').textContent = problem.status === 503 ? 'The database gives no answer.' : problem.message;
  byId('banner-why').textContent = 'What you see may be old. The page goes on asking.';
  pill('interrupted', 'Interrupted');
}

function pill(state, text) {
  byId('pill').dataset.state = state;
  byId('pill-text').textContent = text;
}

function missing(problem) {
  if (place.view === 'overview') return;
  const text = problem.status === 404 ? 'There is no such job.' : problem.message;
  const view = byId(place.view);
  view.shown = null;
  view.replaceChildren(h('section.card.gate', {}, h('h2', {}, text), h('p', {}, h('a', { href: '#/' }, 'Back to the pipeline'))));
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** #/ · #/task/ID · #/find/WORDS · #/alarms and other parts of the overview. */
function go() {
  const [, what = '', rest = ''] = location.hash.split('/');
  const words = decoded(rest);
  if (what === 'task') place = { view: 'task', id: words };
  else if (what === 'find') place = { view: 'found', query: words };
  else place = { view: 'overview' };
  for (const view of VIEWS) byId(view).hidden = view !== place.view || me === null;
  const part = place.view === 'overview' && what ? byId(what) : null;
  if (part) part.scrollIntoView({ block: 'start' });
  else scrollTo(0, 0);
  if (place.view === 'task') byId('task').replaceChildren();
  byId('task').shown = null;
  wanted.add('place');
  wake();
}

byId('search').addEventListener('submit', (event) => {
  event.preventDefault();
  const words = byId('words').value.trim();
  if (words) location.hash = `#/find/${encodeURIComponent(words)}`;
});
addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.target.matches('input, textarea, select') || byId('dialog').open) return;
  event.preventDefault();
  byId('words').focus();
});
addEventListener('hashchange', go);
addEventListener('visibilitychange', () => wake());
addEventListener('online', () => wake());
addEventListener('focus', () => {
  if (failures > 0) wake();
});
afterActions(() => {
  wanted = new Set(Object.keys(LOOKS));
  wake();
});
setInterval(tick, 1000);
go();
run();
