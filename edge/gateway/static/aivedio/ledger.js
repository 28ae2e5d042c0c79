/** How many events may wait for a snapshot before the connection is given up. */
const HELD_LIMIT = 5_000;

/**
 * The tasks and the proof.
 *
 * `head` is the last event inside the newest snapshot, `cursor` the last event of the stream.
 * While `dirty`, nothing that is shown can be proven: events are held back until a snapshot that
 * was started afterwards has arrived.
 */
export class Ledger {
  tasks = new Map();
  head = null;
  cursor = null;
  dirty = true;
  counters = { events: 0, repeats: 0, breaks: 0, resets: 0, snapshots: 0 };

  /** Changes with every cause of `dirty`, so that an older snapshot cannot wash a newer one off. */
  epoch = 0;

  #needs = 0;
  #held = [];

  get complete() {
    return !this.dirty && this.cursor >= this.head;
  }

  /** The stream starts anew at `cursor`: nothing that was known before counts. */
  reset(cursor) {
    this.counters.resets += 1;
    this.#held = [];
    this.cursor = cursor;
    this.head = cursor;
    this.#taint(cursor);
  }

  /** Takes an event of the stream; returns the task if it changed. */
  event(id, data) {
    if (id <= this.cursor) {
      this.counters.repeats += 1;
      return null;
    }
    this.counters.events += 1;
    if (data.prev !== this.cursor || (data.prev < this.head && this.head < id)) {
      this.counters.breaks += 1;
      this.#taint(id);
    }
    this.cursor = id;
    if (!this.dirty) return this.#apply(id, data);
    if (this.#held.length === HELD_LIMIT) throw new RangeError('too many events wait for a snapshot');
    this.#held.push({ id, data });
    return null;
  }

  /**
   * Takes a snapshot; returns what changed, or null when it is older than what broke the proof.
   *
   * Off the stream the cursor goes where the snapshot is, and the server judges it when the
   * stream opens. On the stream the cursor is the stream's own, and the events held back follow.
   */
  snapshot({ tasks, head }, streaming) {
    if (streaming && this.dirty && head < this.#needs) return null;
    this.counters.snapshots += 1;
    const anew = this.dirty;
    const changed = [];
    const removed = [];
    const present = new Set();
    for (const task of tasks) {
      present.add(task.id);
      const known = this.tasks.get(task.id);
      const older = !anew && known !== undefined && task.task_version < known.task_version;
      const next = older ? { ...task, ...known } : task;
      if (known === undefined || !alike(known, next)) changed.push(next);
      this.tasks.set(task.id, next);
    }
    // Tasks do not vanish, unless the database went back to where they did not exist.
    for (const id of anew ? [...this.tasks.keys()] : []) {
      if (!present.has(id) && this.tasks.delete(id)) removed.push(id);
    }

    this.head = anew ? head : Math.max(head, this.head);
    this.dirty = false;
    const held = this.#held;
    this.#held = [];
    if (!streaming) {
      this.cursor = anew ? head : Math.max(head, this.cursor);
      return { changed, removed };
    }
    for (const { id, data } of held) {
      if (data.prev < head && head < id) this.#taint(id);
      if (this.dirty) this.#held.push({ id, data });
      else {
        const task = this.#apply(id, data);
        if (task !== null) changed.push(task);
      }
    }
    return { changed, removed };
  }

  /** Takes one task that was read by itself; returns it if something changed. */
  detail(task) {
    const known = this.tasks.get(task.id);
    const older = known !== undefined && task.task_version < known.task_version;
    const next = older ? { ...task, ...known } : task;
    if (known !== undefined && alike(known, next)) return null;
    this.tasks.set(task.id, next);
    return next;
  }

  /** Takes over what another tab has proven; `tasks` are all of them, or `changed` some. */
  mirror({ tasks, changed = [], removed = [], cursor, head, dirty, source }) {
    if (tasks !== undefined) {
      const present = new Set(tasks.map(({ id }) => id));
      removed = [...this.tasks.keys()].filter((id) => !present.has(id));
      changed = tasks.filter((task) => {
        const known = this.tasks.get(task.id);
        return known === undefined || !alike(known, task);
      });
    }
    // A command's answer may have brought this tab more than the other one knew.
    const newer = ({ id, task_version: version }) => !(this.tasks.get(id)?.task_version > version);
    if (source === 'event') changed = changed.filter(newer);
    for (const task of changed) this.tasks.set(task.id, task);
    for (const id of removed) this.tasks.delete(id);
    this.cursor = cursor;
    this.head = head;
    this.dirty = dirty;
    this.#held = [];
    return { changed, removed };
  }

  #apply(id, { prev: _prev, task_id: key, ...fields }) {
    const known = this.tasks.get(key);
    if (typeof key !== 'string' || id <= this.head) return null;
    if (fields.task_version <= known?.task_version) return null;
    const task = { ...known, ...fields, id: key, last_event_id: id };
    this.tasks.set(key, task);
    return task;
  }

  #taint(needs) {
    this.dirty = true;
    this.epoch += 1;
    this.#needs = needs;
  }
}

function alike(one, two) {
  const keys = Object.keys(two);
  if (keys.length !== Object.keys(one).length) return false;
  return keys.every(
    (key) => one[key] === two[key] || JSON.stringify(one[key]) === JSON.stringify(two[key]),
  );
}
