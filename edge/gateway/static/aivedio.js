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

import { ApiProblem, newKey } from './aivedio/api.js';
import { EventStreamParser } from './aivedio/event_stream.js';
import { Ledger } from './aivedio/ledger.js';
import { canShare, Tabs } from './aivedio/tabs.js';
import { Ended, mark, since, sleep, within } from './aivedio/time.js';

export { ApiProblem, EventStreamParser };

/** Milliseconds. A caller may replace single values by the option `timing`. */
const TIMING = Object.freeze({
  request: 15_000, //       an API call, and a stream until it says `ready`
  silence: 65_000, //       no byte for so long: the connection is dead (a ping comes every 25 s)
  suspect: 30_000, //       the same after the network changed, and for the tab that leads
  ask: 2_000, //            how long that tab may take to answer
  watch: 5_000, //          how often the proof is looked at when nothing arrives
  stable: 5_000, //         a connection that lived so long clears the count of failures
  backoff: 1_000, //        the first wait, doubled by each failure in a row …
  backoffCap: 30_000, //    … up to this, and then drawn evenly from zero to it
  nudge: 1_000, //          the shortest wait, even when something says "now"
  hiddenFloor: 30_000, //   the shortest wait of a hidden page that keeps failing
  pollMin: 10_000, //       snapshots while the stream is interrupted
  pollMax: 30_000,
  resetJitter: 2_000, //    a reset reaches every browser at once, their snapshots should not
  behind: 10_000, //        how long the stream may lag behind a snapshot
  deniedWait: 30_000, //    between tries while signed out or not allowed
  detail: 60, //            events of new tasks gather so long before their details are asked for
});

const FAILURES_UNTIL_INTERRUPTED = 3;
const PAGE_SIZE = 200;
const DETAILS_ONE_BY_ONE = 8;

/**
 * Follows one project. Dispatches `change` when tasks changed and `status` when the connection
 * or the proof did; see aivedio.d.ts for both.
 */
export class ProjectFeed extends EventTarget {
  #options;
  #timing;
  #path;
  #ledger = new Ledger();
  #status = Object.freeze({
    state: 'idle', proven: false, failures: 0, problem: null, asOf: null, loaded: false,
  });

  #life = null; //        aborts with close()
  #session = null; //     aborts with that, and while the page lies in the back-forward cache
  #tabs = null; //        the other tabs that follow the same project
  #led = null; //         what the leading tab said last of its connection
  #untold = { changed: new Map(), removed: new Set(), source: 'event' };
  #link = null; //        the connection that is open or being opened
  #wait = null; //        the pause between two connections
  #failures = 0;
  #problem = null;
  #verdict = null; //     'unauthorized' | 'forbidden' | 'ended' until a try succeeds
  #retry = null;
  #asOf = null;
  #wasLive = false;
  #renew = false; //       the server asked for a new token
  #polls = 0;
  #behindSince = null;
  #pollTimer = null;
  #detailTimer = null;
  #wanted = new Set();
  #sorted = null;

  constructor(options) {
    super();
    if (typeof options?.project !== 'string' || options.project === '') {
      throw new TypeError('ProjectFeed needs the id of a project');
    }
    this.#options = { base: '', credentials: 'same-origin', limit: 2_000, ...options };
    this.#timing = { ...TIMING, ...options.timing };
    const base = String(this.#options.base).replace(/\/+$/, '');
    this.#path = `${base}/projects/${encodeURIComponent(options.project)}`;
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
    this.#verdict = null;
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
    this.#session?.abort(new Ended('closed', false));
    life.abort(new Ended('closed', false));
    this.#update();
  }

  /** Connects again now, whatever the waiting time. */
  refresh() {
    if (this.#tabs === null) this.#reconnect();
    else this.#tabs.refresh();
  }

  /** Creates a task and returns it. A lost answer is asked for again under the same key. */
  async createTask(task, { key = newKey(), signal } = {}) {
    return this.#command('/tasks', task, { 'idempotency-key': key }, signal);
  }

  /** Asks for the cancellation of a task and returns the task. */
  async cancelTask(id, { signal } = {}) {
    return this.#command(`/tasks/${encodeURIComponent(id)}/cancel`, {}, {}, signal);
  }

  /** Starts a new attempt of a task that ended, and returns the task. */
  async retryTask(id, reason, { key = newKey(), signal } = {}) {
    const headers = { 'idempotency-key': key };
    return this.#command(`/tasks/${encodeURIComponent(id)}/retry`, { reason }, headers, signal);
  }

  // ---- alone or with other tabs --------------------------------------------------------------

  #begin(life) {
    const session = new AbortController();
    this.#session = session;
    const { token, share = token === undefined } = this.#options;
    this.#tabs = share !== false && canShare() ? this.#join(share) : null;
    const run = () => this.#tabs?.run(session.signal) ?? this.#run(session.signal);
    // Not before whoever called has got the feed: its listeners may use it.
    Promise.resolve().then(run).catch((error) => {
      if (!life.aborted) reportError(error);
    });
  }

  #join(share) {
    const scope = typeof share === 'string' ? share : '';
    return new Tabs(`aivedio ${scope} ${this.#path}`, this.#timing, {
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

  #tellTabs() {
    if (this.#tabs === null) return;
    const { changed, removed, source } = this.#untold;
    this.#untold = { changed: new Map(), removed: new Set(), source };
    const tasks = { changed: [...changed.values()], removed: [...removed], source };
    this.#tabs.tell({ ...this.#said(), ...tasks });
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
    try {
      await this.#loop(life);
    } finally {
      if (this.#link?.life === life) this.#link = null;
      this.#failures = 0;
      this.#update();
    }
  }

  async #loop(life) {
    while (!life.aborted) {
      let pause;
      try {
        this.#update();
        // A reconnect resumes from its cursor; the server answers a cursor that it cannot
        // continue from with a reset, so a snapshot is needed only when there is no proof.
        if (this.#ledger.dirty) await this.#snapshot(life);
        await this.#follow(life);
        pause = { ms: 0, floor: 0 };
      } catch (error) {
        if (life.aborted) return;
        pause = this.#after(error);
        if (pause === null) return this.#stopped();
      }
      this.#update();
      await this.#rest(pause, life);
    }
    return undefined;
  }

  /** Judges how a connection ended: how long to wait, and how long at least. Null stops. */
  #after(error) {
    const { backoff, backoffCap, stable, hiddenFloor, deniedWait } = this.#timing;
    const link = this.#link;
    this.#link = null;
    const wasReady = link?.ready === true;
    if (wasReady && since(link.began) >= stable) this.#failures = 0;

    if (error instanceof Ended && !error.failure) {
      if (error.why === 'stopped') return null;
      if (error.why === 'renew') this.#renew = true;
      if (error.why === 'refresh') this.#failures = 0;
      if (error.why !== 'drained') {
        // A renewal that is answered with the next renewal must not spin.
        const hurry = since(link?.began ?? mark()) >= this.#timing.nudge;
        return { ms: hurry || error.why === 'refresh' ? 0 : this.#timing.nudge, floor: 0 };
      }
      if (this.#failures > 0 || since(link.began) < stable) this.#failures += 1;
      const asked = this.#retry ?? Math.random() * backoff;
      return { ms: Math.max(asked, this.#drawn(this.#failures - 1)), floor: 0 };
    }

    this.#failures += 1;
    this.#problem = error instanceof ApiProblem ? error : null;
    let ms = this.#drawn(this.#failures);
    let floor = 0;
    if (error instanceof ApiProblem) {
      if (error.status === 401) this.#verdict = 'unauthorized';
      else if (error.status === 403 || error.status === 404) this.#verdict = 'forbidden';
      else this.#verdict = null;
      if (this.#verdict !== null) ms = deniedWait * (0.5 + Math.random());
      if (error.status === 400) this.#ledger.reset(0);
      if (error.retryAfter !== null) {
        floor = error.retryAfter;
        ms = floor + Math.random() * Math.max(floor, Math.min(backoffCap, backoff));
      }
    }
    if (isHidden() && this.#failures >= FAILURES_UNTIL_INTERRUPTED) ms = Math.max(ms, hiddenFloor);
    return { ms, floor };
  }

  #drawn(failures) {
    const { backoff, backoffCap } = this.#timing;
    if (failures < 1) return 0;
    return Math.random() * Math.min(backoffCap, backoff * 2 ** Math.min(failures - 1, 20));
  }

  async #rest({ ms, floor }, life) {
    if (life.aborted) return;
    const began = mark();
    const ender = new AbortController();
    const stop = () => ender.abort();
    life.addEventListener('abort', stop, { once: true });
    this.#wait = {
      end: (force) => {
        const least = Math.min(ms, Math.max(floor, this.#timing.nudge));
        if (force || since(began) >= least) ender.abort();
        else setTimeout(stop, least - since(began));
      },
    };
    await sleep(ms, ender.signal);
    life.removeEventListener('abort', stop);
    this.#wait = null;
  }

  #stopped() {
    this.#verdict = 'ended';
    this.close();
  }

  #reconnect() {
    if (this.#link !== null) this.#link.abort.abort(new Ended('refresh', false));
    this.#wait?.end(true);
  }

  // ---- the stream --------------------------------------------------------------------------

  /** Opens the stream and reads it to its end, which it always throws: by `Ended` or an error. */
  async #follow(life) {
    life.throwIfAborted();
    const link = {
      life, abort: new AbortController(), began: mark(), lastByte: mark(), ready: false,
      suspectSince: null, repairing: false, closed: false, lagged: 0,
    };
    this.#link = link;
    const stop = () => link.abort.abort(life.reason);
    life.addEventListener('abort', stop, { once: true });
    const opening = setTimeout(
      () => link.ready || link.abort.abort(new Ended('timeout', true)),
      this.#timing.request,
    );
    try {
      const response = await this.#send('/events', {
        headers: {
          accept: 'text/event-stream',
          'last-event-id': String(this.#ledger.cursor),
        },
        signal: link.abort.signal,
        purpose: 'stream',
      });
      if (response.status === 204) throw new Ended('stopped', false);
      if (!/^text\/event-stream\b/i.test(response.headers.get('content-type') ?? '')) {
        throw new TypeError('the answer is not an event stream');
      }
      await this.#read(response.body.getReader(), link);
      throw new Ended('drained', !link.ready);
    } catch (error) {
      const { signal } = link.abort;
      throw signal.aborted && signal.reason instanceof Ended ? signal.reason : error;
    } finally {
      clearTimeout(opening);
      life.removeEventListener('abort', stop);
      link.closed = true;
      link.abort.abort(new Ended('done', false));
    }
  }

  async #read(reader, link) {
    const parser = new EventStreamParser();
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done || link.abort.signal.aborted) return;
        link.lastByte = mark();
        const changed = new Map();
        for (const event of parser.push(value)) {
          this.#retry = parser.retry ?? this.#retry;
          const task = this.#frame(event, link);
          if (task) changed.set(task.id, task);
        }
        this.#retry = parser.retry ?? this.#retry;
        this.#publish({ changed: [...changed.values()], removed: [] }, 'event');
        this.#update();
      }
    } finally {
      reader.cancel().catch(() => {});
    }
  }

  #frame({ type, data, id }, link) {
    if (type === 'renew') throw new Ended('renew', false);
    if (type === 'ready' || type === 'reset') {
      const { cursor } = JSON.parse(data);
      if (!Number.isSafeInteger(cursor)) throw new TypeError(`a ${type} without a cursor`);
      if (type === 'reset' || cursor !== this.#ledger.cursor) this.#ledger.reset(cursor);
      link.ready = true;
      this.#problem = null;
      this.#verdict = null;
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
    if (task && task.created_at === undefined) this.#want(task.id);
    return task;
  }

  /** Brings the proof back by a snapshot that starts after what broke it. */
  async #repair(link) {
    if (!this.#ledger.dirty || link.repairing) return;
    link.repairing = true;
    const { signal } = link.abort;
    try {
      for (let tries = 0; this.#ledger.dirty && !signal.aborted; tries += 1) {
        await sleep(Math.random() * this.#timing.resetJitter + this.#drawn(tries), signal);
        if (signal.aborted) return;
        // Not to be had from here: start over, where the server judges the cursor anew.
        if (tries === 5) link.abort.abort(new Ended('unproven', true));
        else await this.#snapshot(signal).catch((error) => this.#note(error));
      }
    } finally {
      link.repairing = false;
    }
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
      const page = await this.#json(`/tasks?${query}`, { signal });
      if (!Array.isArray(page.tasks) || !Number.isSafeInteger(page.last_event_id)) {
        throw new TypeError('the answer is not a snapshot');
      }
      tasks.push(...page.tasks);
      // Pages are read one after the other. Counting from the oldest replays what lies between.
      head = Math.min(head, page.last_event_id);
      next = page.next ?? null;
    } while (next !== null && tasks.length < this.#options.limit);

    if (signal.aborted || epoch !== this.#ledger.epoch) return;
    const streaming = this.#link !== null && !this.#link.closed;
    const taken = this.#ledger.snapshot({ tasks, head }, streaming);
    if (taken === null) return;
    this.#asOf = Math.max(this.#asOf ?? 0, asked);
    this.#publish(taken, 'snapshot');
    this.#update();
  }

  /** Asks for what events do not carry: prompt, model, when it was created. */
  #want(id) {
    this.#wanted.add(id);
    this.#detailTimer ??= setTimeout(() => this.#details(), this.#timing.detail);
  }

  async #details() {
    const life = this.#life?.signal;
    try {
      const wanted = [...this.#wanted];
      this.#wanted.clear();
      if (life === undefined || !this.#leads) return;
      if (wanted.length > DETAILS_ONE_BY_ONE && this.#link !== null) {
        await this.#snapshot(life);
        return;
      }
      for (const id of wanted) {
        const answer = await this.#json(`/tasks/${encodeURIComponent(id)}`, { signal: life });
        this.#detail(answer, 'snapshot');
      }
    } catch (error) {
      // What is missing is decoration; the next snapshot brings it.
      this.#note(error);
    } finally {
      this.#detailTimer = null;
      if (this.#wanted.size > 0 && this.#life !== null) this.#want([...this.#wanted][0]);
    }
  }

  #detail({ task }, source) {
    const changed = this.#ledger.detail(task);
    if (changed) this.#publish({ changed: [changed], removed: [] }, source);
  }

  /** While the stream is interrupted, what is shown is a snapshot of 10 to 30 seconds ago. */
  #poll() {
    const wanted = this.#status.state === 'interrupted' && !isHidden();
    if (!wanted) {
      clearTimeout(this.#pollTimer);
      this.#pollTimer = null;
      this.#polls = 0;
      return;
    }
    if (this.#pollTimer !== null) return;
    const { pollMin, pollMax } = this.#timing;
    const least = this.#polls === 0 ? 0 : pollMin;
    const most = this.#polls === 0 ? pollMin : pollMax;
    this.#polls += 1;
    this.#pollTimer = setTimeout(async () => {
      const life = this.#life?.signal;
      if (life !== undefined && this.#leads && !this.#link?.ready) {
        await this.#snapshot(life).catch((error) => this.#note(error));
      }
      this.#pollTimer = null;
      this.#update();
    }, least + Math.random() * (most - least));
  }

  // ---- the proof and what is told of it ----------------------------------------------------

  /** Ends a dead connection, and looks after a stream that stays behind its snapshot. */
  #check() {
    this.#tabs?.watch();
    const { silence, suspect, behind } = this.#timing;
    const link = this.#link;
    if (link !== null && link.ready) {
      const suspicious =
        link.suspectSince !== null &&
        since(link.suspectSince) > suspect &&
        since(link.lastByte) > suspect;
      if (since(link.lastByte) > silence || suspicious) {
        link.abort.abort(new Ended('silence', true));
      } else if (this.#behindSince !== null && since(this.#behindSince) > behind) {
        this.#behindSince = mark();
        link.lagged += 1;
        if (link.lagged > 2) link.abort.abort(new Ended('behind', true));
        else this.#snapshot(link.abort.signal).catch((error) => this.#note(error));
      }
    }
    this.#update();
  }

  #update() {
    if (this.#life !== null && !this.#leads && this.#led !== null) {
      this.#tell(this.#ledStatus());
      return;
    }
    const ledger = this.#ledger;
    const link = this.#link;
    const heard = link !== null && link.ready && !link.abort.signal.aborted;
    const proven =
      this.#life !== null &&
      heard &&
      ledger.complete &&
      since(link.lastByte) < this.#timing.silence;
    if (proven) {
      this.#wasLive = true;
      this.#asOf = Date.now() - Math.round(since(link.lastByte));
    }
    if (!heard || ledger.dirty || ledger.cursor >= ledger.head) this.#behindSince = null;
    else this.#behindSince ??= mark();

    const status = {
      state: this.#state(proven, heard),
      proven,
      failures: this.#failures,
      problem: this.#problem,
      asOf: this.#asOf,
      loaded: ledger.head !== null,
    };
    this.#tell(status);
    this.#poll();
    if (this.#leads) this.#tellTabs();
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

  #tell(status) {
    const old = this.#status;
    const news = ['state', 'proven', 'failures', 'problem', 'loaded'].some(
      (key) => old[key] !== status[key],
    );
    this.#status = Object.freeze(status);
    if (news) this.dispatchEvent(new CustomEvent('status', { detail: this.#status }));
  }

  #state(proven, heard) {
    if (this.#verdict === 'ended') return 'ended';
    if (this.#life === null) return 'closed';
    if (proven) return 'live';
    if (this.#verdict !== null) return this.#verdict;
    if (heard) return 'syncing';
    if (this.#failures >= FAILURES_UNTIL_INTERRUPTED) return 'interrupted';
    return this.#wasLive ? 'reconnecting' : 'connecting';
  }

  #note(error) {
    if (error instanceof ApiProblem) this.#problem = error;
  }

  #publish({ changed, removed }, source) {
    if (changed.length === 0 && removed.length === 0) return;
    this.#sorted = null;
    if (this.#tabs?.leading) {
      for (const task of changed) this.#untold.changed.set(task.id, task);
      for (const id of removed) {
        this.#untold.changed.delete(id);
        this.#untold.removed.add(id);
      }
      this.#untold.source = source;
    }
    if (this.#life === null) return;
    this.dispatchEvent(new CustomEvent('change', { detail: { changed, removed, source } }));
  }

  #listen(signal) {
    const page = globalThis.document;
    const on = (target, type, listener) => target?.addEventListener?.(type, listener, { signal });
    const awake = () => {
      this.#check();
      this.#wait?.end(false);
    };
    const networkChanged = () => {
      // A machine without a network still reaches its own servers: listen before judging.
      if (this.#link !== null) this.#link.suspectSince = mark();
      this.#check();
    };
    on(page, 'visibilitychange', () => (isHidden() ? this.#update() : awake()));
    on(page, 'resume', awake);
    on(globalThis, 'offline', networkChanged);
    on(globalThis, 'online', () => {
      networkChanged();
      awake();
    });
    on(page, 'freeze', () => this.#tabs?.yield());
    // A page in the back-forward cache holds neither a connection nor a lock nor a channel.
    on(globalThis, 'pagehide', ({ persisted }) => {
      if (persisted) this.#session?.abort(new Ended('parked', false));
    });
    on(globalThis, 'pageshow', () => {
      if (this.#session?.signal.aborted) this.#begin(signal);
      awake();
    });
  }

  // ---- HTTP --------------------------------------------------------------------------------

  async #command(path, body, headers, signal) {
    const life = signal ?? this.#life?.signal ?? new AbortController().signal;
    for (let tries = 1; ; tries += 1) {
      try {
        const answer = await this.#json(path, {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...headers },
          body: JSON.stringify(body),
          signal: life,
        });
        this.#detail(answer, 'command');
        return answer.task;
      } catch (error) {
        // A repeat is harmless: keys and versions make the second call the first one's answer.
        const passing = !(error instanceof ApiProblem) || [502, 503, 504].includes(error.status);
        if (life.aborted || !passing || tries === 3) throw error;
        await sleep(Math.min(error.retryAfter ?? this.#drawn(tries), 5_000), life);
      }
    }
  }

  #json(path, { signal, ...request }) {
    return within(this.#timing.request, signal, async (inner) => {
      const response = await this.#send(path, { signal: inner, purpose: 'api', ...request });
      return response.json();
    });
  }

  /** Sends a request; a refused token is renewed once, at once. */
  async #send(path, { purpose, headers = { accept: 'application/json' }, ...request }) {
    const { token, credentials } = this.#options;
    for (let renew = false; ; renew = true) {
      const ask = { purpose, renew: renew || this.#renew };
      const key = typeof token === 'function' ? await token(ask) : token;
      this.#renew = false;
      const response = await fetch(this.#path + path, {
        ...request,
        credentials,
        cache: 'no-store',
        headers: key ? { ...headers, authorization: authorization(key) } : headers,
      });
      if (response.ok) return response;
      const problem = await ApiProblem.of(response);
      if (response.status !== 401 || renew || typeof token !== 'function') throw problem;
    }
  }
}

/** A bare token is a bearer token; a one-time stream token comes as "Stream …". */
function authorization(key) {
  return key.includes(' ') ? key : `Bearer ${key}`;
}

function chained(data) {
  try {
    const event = JSON.parse(data);
    return Number.isSafeInteger(event?.prev) ? event : null;
  } catch {
    return null;
  }
}

function isHidden() {
  return globalThis.document?.visibilityState === 'hidden';
}

/** Makes a feed and starts it. */
export function connect(options) {
  return new ProjectFeed(options).start();
}
