/**
 * The jobs and their overview. Changes are gathered and drawn once a frame; a card is made when
 * its job can first be seen, and moved in the document only when the order asks for it.
 */

import { JobCard } from './job_card.js';
import { CELLS, cellOf, stepOf, TERMINAL } from './stages.js';
import { count } from './words.js';

const SHOWN_AT_FIRST = 50;

export class JobList {
  #feed;
  #commands;
  #list = document.getElementById('list');
  #flow = document.getElementById('flow');
  #cards = new Map();
  #reached = new Map();
  #cells = new Map();
  #stale = new Set();
  #filter = null;
  #limit = SHOWN_AT_FIRST;
  #frame = null;
  #drawnOnce = false;

  constructor(feed, commands) {
    this.#feed = feed;
    this.#commands = commands;
    for (const cell of CELLS) this.#addCell(cell);
    document.getElementById('more').addEventListener('click', () => {
      this.#limit += SHOWN_AT_FIRST;
      this.draw();
    });
    document.getElementById('show-all').addEventListener('click', () => this.#choose(null));
  }

  /** Takes note of what changed; drawing follows with the next frame. */
  changed({ changed, removed }) {
    for (const task of changed) {
      this.#stale.add(task.id);
      const step = stepOf(task, this.#reached.get(task.id));
      if (!TERMINAL.has(task.status) && step >= 0) this.#reached.set(task.id, step);
    }
    for (const id of removed) {
      this.#reached.delete(id);
      this.#cards.get(id)?.root.remove();
      this.#cards.delete(id);
    }
    this.draw();
  }

  draw() {
    this.#frame ??= requestAnimationFrame(() => {
      this.#frame = null;
      this.#draw();
    });
  }

  /** Says the times of the visible jobs again. */
  tick(now) {
    for (const item of this.#list.children) this.#cards.get(item.dataset.id)?.tick(now);
  }

  #draw() {
    const { tasks, status } = this.#feed;
    const counts = new Map(CELLS.map(({ key }) => [key, 0]));
    const chosen = [];
    for (const task of tasks) {
      const cell = cellOf(task, this.#reached.get(task.id));
      counts.set(cell, counts.get(cell) + 1);
      if (this.#filter === null || this.#filter === cell) chosen.push(task);
    }
    this.#drawOverview(counts);
    this.#drawCards(chosen.slice(0, this.#limit));

    const some = tasks.length > 0;
    document.getElementById('show-all').hidden = this.#filter === null;
    document.getElementById('more').hidden = chosen.length <= this.#limit;
    document.getElementById('jobs-count').textContent =
      this.#filter === null ? count(tasks.length, 'job') : `${chosen.length} of ${count(tasks.length, 'job')}`;
    document.getElementById('jobs-count').hidden = !some;
    this.#flow.hidden = !some;
    const empty = document.getElementById('empty');
    empty.hidden = !status.loaded || chosen.length > 0;
    if (!empty.hidden) {
      document.getElementById('empty-title').textContent = some ? 'No job is here now' : 'No jobs yet';
      document.getElementById('empty-text').textContent = some
        ? 'Jobs appear here as they reach this state.'
        : 'Describe a video above and create a job, or run five at once and watch them go all the way from the queue to ready.';
    }
    this.#drawnOnce ||= status.loaded;
  }

  #drawOverview(counts) {
    for (const [key, { button, number, name }] of this.#cells) {
      const jobs = counts.get(key);
      if (number.textContent !== String(jobs)) {
        number.textContent = String(jobs);
        button.classList.toggle('busy', jobs > 0);
        button.setAttribute('aria-label', `${name}: ${count(jobs, 'job')}`);
      }
      button.setAttribute('aria-pressed', String(this.#filter === key));
    }
  }

  #drawCards(tasks) {
    const wanted = new Set(tasks.map(({ id }) => id));
    for (const item of [...this.#list.children]) {
      if (!wanted.has(item.dataset.id)) item.remove();
    }
    let place = this.#list.firstElementChild;
    for (const task of tasks) {
      let card = this.#cards.get(task.id);
      const isNew = card === undefined;
      if (isNew) {
        card = new JobCard(this.#commands);
        card.reached = this.#reached.get(task.id);
        card.root.classList.toggle('fresh', this.#drawnOnce && this.#filter === null);
        this.#cards.set(task.id, card);
      }
      if (isNew || this.#stale.has(task.id)) {
        card.update(task);
        this.#stale.delete(task.id);
      }
      if (card.root === place) place = place.nextElementSibling;
      else this.#list.insertBefore(card.root, place);
    }
  }

  #addCell({ key, name }) {
    if (key === 'failed') {
      const gap = document.createElement('span');
      gap.className = 'apart';
      this.#flow.append(gap);
    }
    const button = document.createElement('button');
    const number = document.createElement('span');
    const label = document.createElement('span');
    button.type = 'button';
    number.className = 'count';
    label.className = 'name';
    label.textContent = name;
    button.append(number, label);
    if (/^step[0-5]$/.test(key)) button.classList.add('leads');
    if (key === 'step6') button.classList.add('good', 'last');
    if (key === 'failed') button.classList.add('bad');
    if (key === 'canceled') button.classList.add('done', 'last');
    button.addEventListener('click', () => this.#choose(this.#filter === key ? null : key));
    this.#flow.append(button);
    this.#cells.set(key, { button, number, name });
  }

  #choose(filter) {
    this.#filter = filter;
    this.#limit = SHOWN_AT_FIRST;
    this.draw();
  }
}
