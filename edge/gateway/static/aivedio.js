/**
 * The jobs of one AiVedio project, live in a browser, and a flag that says whether what is shown
 * is proven complete.
 *
 *     import { connect } from './aivedio.js';
 *     const feed = connect({ project, onChange: () => draw(feed.tasks) });
 *
 * How it stays true: a snapshot names the id of the last event it contains; the stream goes on
 * from there; every event names the one sent before it. A repeat is dropped, a hole or a reset is
 * answered with a new snapshot, and until that has arrived `feed.proven` is false. Whatever
 * happens to the network, the server or the tab, the feed tries again until `close()`.
 *
 * No build, no dependency. Types are in aivedio.d.ts, the guide is docs/browser.md.
 */

import { Api, newKey } from './aivedio/api.js';
import { Connection } from './aivedio/connection.js';
import { EventStreamParser } from './aivedio/event_stream.js';
import { Ledger } from './aivedio/ledger.js';
import { Patience } from './aivedio/patience.js';
import { ApiProblem } from './aivedio/problem.js';
import { canShare, Tabs } from './aivedio/tabs.js';
import { Ended, isHidden, mark, since, sleep } from './aivedio/time.js';
import { drawn, TIMING } from './aivedio/timing.js';

export { ApiProblem, EventStreamParser };

const PAGE_SIZE = 200;
const DETAILS_ONE_BY_ONE = 8;
const REPAIRS_ON_ONE_CONNECTION = 5;
const LAGS_ON_ONE_CONNECTION = 2;

/**
 * Follows one project. Dispatches `change` when tasks changed and `status` when the connection
 * or the proof did; see aivedio.d.ts for both.
 */
export class ProjectFeed extends EventTarget {
  #options;
  #timing;
  #path;
  #api;
  #ledger = new Ledger();
  #patience;
  #sorted = null;
  #status = Object.freeze({
    state: 'idle', proven: false, failures: 0, problem: null, asOf: null, loaded: false,
  });

  #life = null; //        aborts with close()
  #session = null; //     aborts with that, and while the page lies in the back-forward cache
  #link = null; //        the connection that is open or being opened
  #wait = null; //        the pause between two connections

  #tabs = null; //        the other tabs that follow the same project
  #led = null; //         what the leading tab said last of its connection
  #untold = new Untold();

  #ended = false;
  #wasLive = false;
  #asOf = null;
  #behindSince = null;
  #polls = 0;
  #pollTimer = null;
  #wanted = new Set();
  #detailTimer = null;
  #detailFailures = 0;

  constructor(options) {
    super();
    if (typeof options?.project !== 'string' || options.project === '') {
      throw new TypeError('ProjectFeed needs the id of a project');
    }
    this.#options = { base: '', credentials: 'same-origin', limit: 2_000, ...options };
    this.#timing = { ...TIMING, ...options.timing };
    const base = String(this.#options.base).replace(/\/+$/, '');
    this.#path = `${base}/projects/${encodeURIComponent(options.project)}`;
    this.#api = new Api(this.#path, this.#options, this.#timing);
    this.#patience = new Patience(this.#timing);
    if (options.onChange) this.addEventListener('change', ({ detail }) => options.onChange(detail));
    if (options.onStatus) this.addEventListener('status', ({ detail }) => options.onStatus(detail));
  }

  /** The tasks as they are known, newest first. */
  get tasks() {
    this.#sorted ??= [...this.#ledger.tasks.values()].sort((a, b) => (a.id < b.id ? 1 : -1));
    return this.#sorted;
  }

  /** True while what is shown is proven to be all that the database holds. */
  get proven() {
    return this.#status.proven;
  }

  get status() {
    return this.#status;
  }

  /** What the feed has met so far; for tests and for the curious. */
  get counters() {
    return { ...this.#ledger.counters, cursor: this.#ledger.cursor, head: this.#ledger.head };
  }

  /** The task with this id, or undefined. */
  get(id) {
    return this.#ledger.tasks.get(id);
  }

  /** Begins to follow; a second call changes nothing. */
  start() {
    if (this.#life !== null) return this;
    const life = new AbortController();
    this.#life = life;
    this.#ended = false;
    this.#listen(life.signal);
    const watch = setInterval(() => this.#check(), this.#timing.watch);
    life.signal.addEventListener('abort', () => clearInterval(watch), { once: true });
    this.#begin(life.signal);
    return this;
  }

  /** Ends everything, pending reconnects too; nothing is dispatched afterwards but this status. */
  close() {
    if (this.#life === null) return;
    const life = this.#life;
    this.#life = null;
    this.#session?.abort(new Ended('closed'));
    life.abort(new Ended('closed'));
    this.#update();
  }

  /** Connects again now, whatever the waiting time. */
  refresh() {
    if (this.#tabs === null) this.#reconnect();
    else this.#tabs.refresh();
  }

  /** Creates a task and returns it. A lost answer is asked for again under the same key. */
  createTask(task, { key = newKey(), signal } = {}) {
    return this.#command('/tasks', task, { 'idempotency-key': key }, signal);
  }

  /** Asks for the cancellation of a task and returns the task. */
  cancelTask(id, { signal } = {}) {
    return this.#command(`/tasks/${encodeURIComponent(id)}/cancel`, {}, {}, signal);
  }

  /** Starts a new attempt of a task that ended, and returns the task. */
  retryTask(id, reason, { key = newKey(), signal } = {}) {
    const headers = { 'idempotency-key': key };
    return this.#command(`/tasks/${encodeURIComponent(id)}/retry`, { reason }, headers, signal);
  }

  async #command(path, body, headers, signal) {
    const life = signal ?? this.#life?.signal ?? new AbortController().signal;
    const answer = await this.#api.command(path, body, headers, life);
    this.#detail(answer.task, 'command');
    return answer.task;
  }

  // ---- alone or with other tabs --------------------------------------------------------------

  #begin(life) {
    const session = new AbortController();
    this.#session = session;
    const { token, share = token === undefined } = this.#options;
    const tabs = share !== false && canShare() ? this.#join(share) : null;
    this.#tabs = tabs;
    const run = () => (tabs === null ? this.#run(session.signal) : tabs.run(session.signal));
    // Not before whoever called has got the feed: its listeners may use it.
    Promise.resolve().then(run).catch((error) => {
      if (!life.aborted) reportError(error);
    });
  }

  #join(share) {
    const scope = typeof share === 'string' ? share : '';
    // The number changes with what tabs say to each other: old and new pages must not mix.
    return new Tabs(`aivedio 1 ${scope} ${this.#path}`, this.#timing, {
      lead: (reign) => this.#run(reign),
      whole: () => this.#whole(),
      take: (news) => this.#follows(news),
      refresh: () => this.#reconnect(),
    });
  }

  get #leads() {
    return this.#tabs === null || this.#tabs.leading;
  }

  /** What the other tabs need to know besides tasks. */
  #said() {
    const { cursor, head, dirty } = this.#ledger;
    const { problem, ...status } = this.#status;
    return { cursor, head, dirty, status: { ...status, problem: problem && { ...problem } } };
  }

  #whole() {
    this.#check();
    return { ...this.#said(), tasks: this.tasks };
  }

  /** Takes what the leading tab says. */
  #follows({ status, source = 'snapshot', ...news }) {
    if (this.#life === null) return;
    const { problem } = status;
    const old = this.#led?.problem;
    const same = old && problem && old.status === problem.status && old.traceId === problem.traceId;
    this.#led = { ...status, problem: same ? old : problem && ApiProblem.from(problem) };
    this.#publish(this.#ledger.mirror({ ...news, source }), source);
    this.#update();
  }

  // ---- the loop ----------------------------------------------------------------------------

  /** Follows the project until `life` aborts, in this tab. */
  async #run(life) {
    this.#led = null;
    this.#link = null;
    try {
      while (!life.aborted) await this.#once(life);
    } finally {
      this.#patience.failures = 0;
      this.#update();
    }
  }

  /** One connection from its beginning to its end, and the wait after it. */
  async #once(life) {
    let link = null;
    let wait;
    try {
      this.#update();
      // A reconnect resumes from its cursor; the server answers a cursor that it cannot
      // continue from with a reset, so a snapshot is needed only when there is no proof.
      if (this.#ledger.dirty) await this.#snapshot(life);
      link = new Connection(this.#timing);
      this.#link = link;
      await link.follow(this.#api, this.#ledger.cursor, life, (events, { retry }) => {
        this.#patience.retry = retry ?? this.#patience.retry;
        this.#take(events, link);
      });
    } catch (error) {
      if (life.aborted) return;
      if (error instanceof Ended && error.why === 'stopped') {
        this.#ended = true;
        this.close();
        return;
      }
      if (error instanceof Ended && error.why === 'renew') this.#api.renew();
      if (error instanceof ApiProblem && error.status === 400) this.#ledger.reset(0);
      wait = this.#patience.after(error, link);
    } finally {
      if (this.#link === link) this.#link = null;
    }
    this.#update();
    await this.#rest(wait, life);
  }

  /** Waits `ms`; whatever says "now" cannot make it shorter than `floor`, but `refresh` can. */
  async #rest({ ms, floor }, life) {
    if (life.aborted) return;
    const began = mark();
    const ender = new AbortController();
    const stop = () => ender.abort();
    life.addEventListener('abort', stop, { once: true });
    this.#wait = {
      end: stop,
      hurry: () => {
        const left = Math.min(ms, Math.max(floor, this.#timing.nudge)) - since(began);
        if (left <= 0) stop();
        else setTimeout(stop, left);
      },
    };
    await sleep(ms, ender.signal);
    life.removeEventListener('abort', stop);
    this.#wait = null;
  }

  #reconnect() {
    this.#link?.end('refresh');
    this.#wait?.end();
  }

  // ---- the stream --------------------------------------------------------------------------

  #take(events, link) {
    const changed = new Map();
    for (const event of events) {
      const task = this.#frame(event, link);
      if (task !== null) changed.set(task.id, task);
    }
    this.#publish({ changed: [...changed.values()], removed: [] }, 'event');
    this.#update();
  }

  /** Takes one frame; returns the task that it changed, or null. */
  #frame({ type, data, id }, link) {
    if (type === 'renew') throw new Ended('renew');
    if (type === 'status') {
      link.blind = JSON.parse(data).database === 'away';
      return null;
    }
    if (type === 'ready' || type === 'reset') {
      const { cursor } = JSON.parse(data);
      if (!Number.isSafeInteger(cursor)) throw new TypeError(`a ${type} without a cursor`);
      if (type === 'reset' || cursor !== this.#ledger.cursor) this.#ledger.reset(cursor);
      link.ready = true;
      this.#patience.succeeded();
      this.#repair(link);
      return null;
    }
    // An event of a kind that is not known here has no place in the chain unless it says so.
    const event = type === 'task.status' ? JSON.parse(data) : chained(data);
    if (event === null) return null;
    const number = Number(id);
    if (!Number.isSafeInteger(number) || !Number.isSafeInteger(event.prev)) {
      throw new TypeError('an event without an id');
    }
    const task = this.#ledger.event(number, event);
    this.#repair(link);
    if (task !== null && task.created_at === undefined) this.#want(task.id);
    return task;
  }

  /** Brings the proof back by a snapshot that starts after what broke it. */
  async #repair(link) {
    if (!this.#ledger.dirty || link.repairing) return;
    link.repairing = true;
    for (let tries = 0; this.#ledger.dirty && !link.signal.aborted; tries += 1) {
      const jitter = Math.random() * this.#timing.resetJitter;
      await sleep(jitter + drawn(tries, this.#timing), link.signal);
      // Not to be had from here: start over, where the server judges the cursor anew.
      if (tries === REPAIRS_ON_ONE_CONNECTION) link.end('unproven', true);
      if (!link.signal.aborted) await this.#attempt(this.#snapshot(link.signal));
    }
    link.repairing = false;
  }

  // ---- snapshots ---------------------------------------------------------------------------

  /** Reads every page of the project's tasks and takes them into the ledger. */
  async #snapshot(signal) {
    const { epoch } = this.#ledger;
    const asked = Date.now();
    const tasks = [];
    let head = Infinity;
    let next = null;
    do {
      const query = new URLSearchParams({ limit: String(PAGE_SIZE) });
      if (next !== null) query.set('after', next);
      const page = await this.#api.json(`/tasks?${query}`, { signal });
      if (!Array.isArray(page.tasks) || !Number.isSafeInteger(page.last_event_id)) {
        throw new TypeError('the answer is not a snapshot');
      }
      tasks.push(...page.tasks);
      // Pages are read one after the other. Counting from the oldest replays what lies between.
      head = Math.min(head, page.last_event_id);
      next = page.next ?? null;
    } while (next !== null && tasks.length < this.#options.limit);

    if (signal.aborted || epoch !== this.#ledger.epoch) return;
    const taken = this.#ledger.snapshot({ tasks, head }, this.#link?.open === true);
    if (taken === null) return;
    this.#asOf = Math.max(this.#asOf ?? 0, asked);
    this.#publish(taken, 'snapshot');
    this.#update();
  }

  /** Waits for something that may fail: it is not what keeps the feed going. */
  async #attempt(work) {
    try {
      await work;
      return true;
    } catch (error) {
      this.#patience.note(error);
      return false;
    }
  }

  /** Asks for what events do not carry: prompt, model, when it was created. */
  #want(id) {
    this.#wanted.add(id);
    const wait = this.#timing.detail + drawn(this.#detailFailures, this.#timing);
    this.#detailTimer ??= setTimeout(() => this.#fetchDetails(), wait);
  }

  async #fetchDetails() {
    const life = this.#life?.signal;
    const wanted = [...this.#wanted];
    this.#wanted.clear();
    if (life !== undefined && this.#leads) {
      const done = await this.#attempt(this.#details(wanted, life));
      this.#detailFailures = done ? 0 : this.#detailFailures + 1;
      const missing = (id) => this.get(id)?.created_at === undefined && this.get(id) !== undefined;
      for (const id of done ? [] : wanted.filter(missing)) this.#wanted.add(id);
    }
    this.#detailTimer = null;
    if (this.#wanted.size > 0 && this.#life !== null) this.#want([...this.#wanted][0]);
  }

  async #details(wanted, signal) {
    if (wanted.length > DETAILS_ONE_BY_ONE) {
      await this.#snapshot(signal);
      return;
    }
    for (const id of wanted) {
      const { task } = await this.#api.json(`/tasks/${encodeURIComponent(id)}`, { signal });
      this.#detail(task, 'snapshot');
    }
  }

  #detail(task, source) {
    const changed = this.#ledger.detail(task);
    if (changed !== null) this.#publish({ changed: [changed], removed: [] }, source);
  }

  /** While the stream is interrupted, what is shown is a snapshot of 10 to 30 seconds ago. */
  #poll() {
    if (this.#status.state !== 'interrupted' || isHidden()) {
      clearTimeout(this.#pollTimer);
      this.#pollTimer = null;
      this.#polls = 0;
      return;
    }
    if (this.#pollTimer !== null) return;
    const { pollMin, pollMax } = this.#timing;
    const [least, most] = this.#polls === 0 ? [0, pollMin] : [pollMin, pollMax];
    this.#polls += 1;
    this.#pollTimer = setTimeout(async () => {
      const life = this.#life?.signal;
      if (life !== undefined && this.#leads && !this.#link?.ready) {
        await this.#attempt(this.#snapshot(life));
      }
      this.#pollTimer = null;
      this.#update();
    }, least + Math.random() * (most - least));
  }

  // ---- the proof and what is told of it ----------------------------------------------------

  /** Ends a dead connection, and looks after a stream that stays behind its snapshot. */
  #check() {
    this.#tabs?.watch();
    const link = this.#link;
    link?.check();
    if (this.#behindSince !== null && since(this.#behindSince) > this.#timing.behind) {
      this.#behindSince = mark();
      link.lagged += 1;
      if (link.lagged > LAGS_ON_ONE_CONNECTION) link.end('behind', true);
      else this.#attempt(this.#snapshot(link.signal));
    }
    this.#update();
  }

  #update() {
    if (this.#life !== null && !this.#leads && this.#led !== null) {
      this.#tell(this.#ledStatus());
      return;
    }
    const { complete, dirty } = this.#ledger;
    const link = this.#link;
    const heard = this.#life !== null && link !== null && link.ready && link.open;
    const proven = heard && !link.blind && complete && link.silence < this.#timing.silence;
    if (proven) {
      this.#wasLive = true;
      this.#asOf = Date.now() - Math.round(link.silence);
    }
    if (!heard || dirty || complete) this.#behindSince = null;
    else this.#behindSince ??= mark();

    this.#tell({
      state: this.#state(proven, heard),
      proven,
      failures: this.#patience.failures,
      problem: this.#patience.problem,
      asOf: this.#asOf,
      loaded: this.#asOf !== null,
    });
    this.#poll();
    if (this.#tabs?.leading) this.#tabs.tell({ ...this.#said(), ...this.#untold.take() });
  }

  /** A tab that is led believes its leader as long as it hears it. */
  #ledStatus() {
    const lost = this.#tabs.silence >= this.#timing.silence;
    const { proven, state } = this.#led;
    return {
      ...this.#led,
      proven: proven && !lost,
      state: state === 'live' && lost ? 'reconnecting' : state,
    };
  }

  #state(proven, heard) {
    if (this.#ended) return 'ended';
    if (this.#life === null) return 'closed';
    if (proven) return 'live';
    if (this.#patience.verdict !== null) return this.#patience.verdict;
    if (heard && !this.#link.blind) return 'syncing';
    if (heard || this.#patience.interrupted) return 'interrupted';
    return this.#wasLive ? 'reconnecting' : 'connecting';
  }

  #tell(status) {
    const old = this.#status;
    const news = ['state', 'proven', 'failures', 'problem', 'loaded'].some(
      (key) => old[key] !== status[key],
    );
    this.#status = Object.freeze(status);
    if (news) this.dispatchEvent(new CustomEvent('status', { detail: this.#status }));
  }

  #publish({ changed, removed }, source) {
    if (changed.length === 0 && removed.length === 0) return;
    this.#sorted = null;
    if (this.#life === null) return;
    if (this.#tabs?.leading) this.#untold.add(changed, removed, source);
    this.dispatchEvent(new CustomEvent('change', { detail: { changed, removed, source } }));
  }

  #listen(signal) {
    const page = globalThis.document;
    const on = (target, type, listener) => target?.addEventListener?.(type, listener, { signal });
    const awake = () => {
      this.#check();
      this.#wait?.hurry();
    };
    on(page, 'visibilitychange', () => (isHidden() ? this.#update() : awake()));
    on(page, 'resume', awake);
    on(page, 'freeze', () => this.#tabs?.yield());
    // A machine without a network still reaches its own servers: listen before judging.
    on(globalThis, 'offline', () => this.#link?.suspect());
    on(globalThis, 'online', () => {
      this.#link?.suspect();
      awake();
    });
    // A page in the back-forward cache holds neither a connection nor a lock nor a channel.
    on(globalThis, 'pagehide', ({ persisted }) => {
      if (persisted) this.#session?.abort(new Ended('parked'));
    });
    on(globalThis, 'pageshow', () => {
      if (this.#session?.signal.aborted) this.#begin(signal);
      awake();
    });
  }
}

/** What the leading tab has not told the others yet. */
class Untold {
  #changed = new Map();
  #removed = new Set();
  #source = 'event';

  add(changed, removed, source) {
    for (const task of changed) {
      this.#changed.set(task.id, task);
      this.#removed.delete(task.id);
    }
    for (const id of removed) {
      this.#changed.delete(id);
      this.#removed.add(id);
    }
    this.#source = source;
  }

  take() {
    const told = {
      changed: [...this.#changed.values()],
      removed: [...this.#removed],
      source: this.#source,
    };
    this.#changed.clear();
    this.#removed.clear();
    return told;
  }
}

function chained(data) {
  try {
    const event = JSON.parse(data);
    return Number.isSafeInteger(event?.prev) ? event : null;
  } catch {
    return null;
  }
}

/** Makes a feed and starts it. */
export function connect(options) {
  return new ProjectFeed(options).start();
}
