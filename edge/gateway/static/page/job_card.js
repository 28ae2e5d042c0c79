/** One job on the page. It touches only what changed, so that a thousand updates stay smooth. */

import { STEPS, TERMINAL, view } from './stages.js';
import { ago, duration } from './words.js';

const template = document.getElementById('job-template');

export class JobCard {
  #parts;
  #segments;
  #steps;
  #shown = new Map();
  #task = null;

  /** The last step that the task was seen in, for the stages that do not tell it. */
  reached;

  constructor(commands) {
    this.root = template.content.firstElementChild.cloneNode(true);
    const find = (name) => this.root.querySelector(`.${name}`);
    this.#parts = {
      prompt: find('prompt'), badge: find('badge-text'), track: find('track'),
      failure: find('failure'), failureText: find('failure-text'), trace: find('trace'),
      model: find('model'), attempt: find('attempt'), when: find('when'),
      asset: find('asset'), assetId: find('asset-id'), trouble: find('job-trouble'),
      cancel: find('cancel'), again: find('again'),
    };
    this.#segments = STEPS.map(() => {
      const segment = document.createElement('span');
      segment.className = 'segment';
      segment.append(document.createElement('span'));
      segment.firstChild.className = 'fill';
      return segment;
    });
    this.#parts.track.append(...this.#segments);
    this.#steps = STEPS.map(({ name }) => {
      const item = document.createElement('li');
      item.textContent = name;
      return item;
    });
    find('steps').append(...this.#steps);
    this.#parts.cancel.addEventListener('click', () => this.#command(commands.cancel, 'cancel'));
    this.#parts.again.addEventListener('click', () => this.#command(commands.again, 'again'));
  }

  get task() {
    return this.#task;
  }

  update(task) {
    const look = view(task, this.reached);
    if (!TERMINAL.has(task.status) && look.step >= 0) this.reached = look.step;
    if (this.#task !== null && task.task_version > this.#task.task_version) this.#calm();
    this.#task = task;
    const { prompt, badge, track, failureText, trace, model, attempt, assetId } = this.#parts;

    this.#set('kind', look.kind, (kind) => (this.root.dataset.kind = kind));
    this.#set('id', task.id, (id) => (this.root.dataset.id = id));
    this.#text(prompt, task.prompt || (task.created_at ? 'Job without a prompt' : 'New job'));
    this.#text(badge, look.label);
    this.#text(model, task.model ?? '');
    this.#text(attempt, `attempt ${task.attempt_no}`);
    this.#show('attempt', task.attempt_no > 1);

    look.parts.forEach((part, index) => {
      const { style } = this.#segments[index].firstChild;
      this.#set(`part${index}`, part, () => style.setProperty('--part', String(part)));
    });
    this.#set('unmeasured', look.unmeasured, (step) => {
      this.#segments.forEach((one, index) => one.classList.toggle('unmeasured', index === step));
    });
    this.#set('step', look.step, (step) => {
      this.#steps.forEach((one, index) => one.classList.toggle('now', index === step));
    });
    this.#set('percent', look.percent, (percent) => track.setAttribute('aria-valuenow', percent));
    this.#set('label', look.label, (label) => track.setAttribute('aria-valuetext', label));

    this.#show('failure', task.status === 'failed' && task.error !== null);
    this.#text(failureText, task.error?.message ?? '');
    this.#text(trace, task.error?.trace_id ?? '');
    this.#show('asset', task.status === 'ready' && task.asset_id !== null);
    this.#text(assetId, task.asset_id ?? '');
    const over = TERMINAL.has(task.status);
    this.#show('cancel', !over && !task.cancel_requested);
    this.#show('again', over && task.status !== 'ready');
    this.tick(Date.now());
  }

  /** Says the time again; called once a second for the cards that can be seen. */
  tick(now) {
    const { when } = this.#parts;
    const task = this.#task;
    const updated = Date.parse(task.updated_at);
    const created = task.created_at ? Date.parse(task.created_at) : NaN;
    const over = TERMINAL.has(task.status);
    const began = Number.isNaN(created) ? updated : created;
    let text = ago(over ? updated : began, now);
    if (task.status === 'ready' && !Number.isNaN(created)) {
      text = `took ${duration(updated - created)}, ${text}`;
    }
    this.#text(when, text);
    this.#set('when', over ? task.updated_at : (task.created_at ?? task.updated_at), (iso) => {
      when.dateTime = iso;
      when.title = new Date(iso).toLocaleString();
    });
  }

  async #command(send, name) {
    const button = this.#parts[name];
    button.disabled = true;
    this.#parts.trouble.hidden = true;
    try {
      await send(this.#task.id);
    } catch (error) {
      this.#parts.trouble.textContent = error.message;
      this.#parts.trouble.hidden = false;
    } finally {
      button.disabled = false;
    }
  }

  #calm() {
    if (!this.#parts.trouble.hidden) this.#parts.trouble.hidden = true;
  }

  #text(element, value) {
    this.#set(element, value, () => (element.textContent = value));
  }

  #show(name, visible) {
    this.#set(`show ${name}`, visible, () => (this.#parts[name].hidden = !visible));
  }

  #set(key, value, write) {
    if (this.#shown.get(key) === value) return;
    this.#shown.set(key, value);
    write(value);
  }
}
