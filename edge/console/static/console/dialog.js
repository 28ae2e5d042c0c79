/** Asks for a reason, does it, and shows what was done. */

import { act } from './api.js';
import { byId, facts, h } from './dom.js';
import { words } from './words.js';

const dialog = byId('dialog');
let done = () => {};

/** Call `listener` after each action, so that what is shown becomes true again. */
export function afterActions(listener) {
  done = listener;
}

/** Ask for a reason and do an action. `show` makes what is told of the result. */
export function ask({ title, text, name, body, verb, danger = false, show = told }) {
  const reason = h('input', { id: 'reason', required: true, maxlength: 1000, autocomplete: 'off', placeholder: 'Kept in the audit, with your name' });
  const trouble = h('p.trouble', { role: 'alert', hidden: true });
  const go = h(danger ? 'button.button.danger' : 'button.button.primary', { type: 'submit' }, verb);
  const form = h('form', { onsubmit: submit },
    heading(title), h('p', {}, text), subject(body),
    h('label', { for: 'reason' }, 'Why?'), reason, trouble,
    h('div.row.ends', {}, close('Leave it'), go));
  open(form);
  reason.focus();

  async function submit(event) {
    event.preventDefault();
    go.disabled = true;
    trouble.hidden = true;
    try {
      const answer = await act(name, { ...body, reason: reason.value });
      open(h('div', {}, heading('Done'), show(answer), h('p.faint', {}, `Audited as ${answer.who}: ${answer.reason}`), h('div.row.ends', {}, close('Close'))));
      done();
    } catch (problem) {
      trouble.textContent = problem.message;
      trouble.hidden = false;
      go.disabled = false;
    }
  }
}

/** Show what a dead callback would do now, and offer to do it. */
export async function rehearse(callback, then) {
  open(h('div', {}, heading(`Callback ${callback}`), h('p', {}, 'Rehearsing…')));
  try {
    const { result } = await act('rehearse_callback', { callback });
    open(h('div', {},
      heading(`Callback ${callback}: a rehearsal`),
      h('p', {}, 'This is what it would do now. Nothing was changed.'),
      outcome(result),
      h('div.row.ends', {}, close('Close'),
        h('button.button.primary', { type: 'button', onclick: () => then(result), disabled: result.status === 'dead' }, 'Apply it…'))));
  } catch (problem) {
    open(h('div', {}, heading(`Callback ${callback}`), h('p.trouble', { role: 'alert' }, problem.message), h('div.row.ends', {}, close('Close'))));
  }
}

/** What a callback did, or would do: how it was judged, and the job before and after. */
export function outcome(result) {
  const before = result.before ?? {};
  const after = result.after ?? {};
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]));
  const text = (value) => (value === null || value === undefined ? '–' : typeof value === 'object' ? (value.code ?? JSON.stringify(value)) : words(value));
  return h('div.outcome', { data: { verdict: result.verdict ?? result.status } },
    facts({ judged: result.verdict, ends: result.status, error: result.error, job: result.task_id ?? 'none', agrees: result.agrees === false ? 'its clues name different attempts' : null }),
    names.length === 0
      ? h('p', {}, result.task_id ? 'The job stays as it is.' : 'It names no job, so none is touched.')
      : h('table.changes', {},
          h('thead', {}, h('tr', {}, h('th', {}, ''), h('th', {}, 'before'), h('th', {}, 'after'))),
          h('tbody', {}, names.map((name) => h('tr', {}, h('th', {}, words(name)), h('td', {}, text(before[name])), h('td', {}, text(after[name])))))));
}

function told({ result }) {
  if (result === true) return h('p', {}, 'It is done.');
  if (result && 'dry_run' in result) return outcome(result);
  if (result && 'messages' in result) return h('p', {}, result.messages === 1 ? 'One message.' : `${result.messages} messages.`);
  if (result?.verdict === 'duplicate') return h('p', {}, 'It was done already.');
  return facts(result) ?? h('p', {}, 'It is done.');
}

function subject(body) {
  const { key: _key, ...shown } = body;
  return facts(shown);
}

const heading = (text) => h('h2', { id: 'dialog-title' }, text);
const close = (text) => h('button.button', { type: 'button', onclick: () => dialog.close() }, text);

function open(content) {
  dialog.replaceChildren(content);
  if (!dialog.open) dialog.showModal();
}
