/** Puts the page together: one feed, and the parts that show it. */

import { ProjectFeed } from './aivedio.js';
import { Composer } from './page/composer.js';
import { Connection, GATES } from './page/connection.js';
import { JobList } from './page/job_list.js';
import { count } from './page/words.js';

const byId = (id) => document.getElementById(id);
const project = new URLSearchParams(location.search).get('project');

if (project) follow(project);
else chooseProject();

function follow(id) {
  const feed = new ProjectFeed({ project: id });
  const jobs = new JobList(feed, {
    cancel: (task) => feed.cancelTask(task),
    again: (task) => feed.retryTask(task, 'asked for on the page'),
  });
  const connection = new Connection(feed);
  new Composer(feed);

  feed.addEventListener('change', ({ detail }) => {
    jobs.changed(detail);
    if (detail.source === 'event') announce(detail.changed);
  });
  feed.addEventListener('status', () => {
    connection.update();
    jobs.draw();
  });

  byId('project').hidden = false;
  byId('project').querySelector('code').textContent = id;
  byId('composer').hidden = false;
  byId('jobs').hidden = false;
  setInterval(() => {
    if (document.visibilityState === 'hidden') return;
    connection.tick();
    jobs.tick(Date.now());
  }, 1000);
  document.addEventListener('click', copy);
  feed.start();
  connection.update();
}

/** Without a project in the address: the session knows some, or the user does. */
async function chooseProject() {
  let projects = [];
  try {
    const response = await fetch('me', { cache: 'no-store', signal: AbortSignal.timeout(10_000) });
    if (response.status === 401) {
      showGate('unauthorized', 'Signed out', GATES.unauthorized);
      byId('gate-retry').hidden = false;
      byId('gate-retry').addEventListener('click', () => location.reload());
      addEventListener('focus', () => location.reload());
      return;
    }
    if (response.ok) ({ projects } = await response.json());
  } catch {
    // Whoever knows the id can still enter it.
  }
  if (projects.length === 1) {
    open(projects[0]);
    return;
  }
  const text = projects.length > 0 ? 'Choose one of yours.' : 'Enter the id of a project of yours.';
  showGate('idle', 'No project', { title: 'Which project?', text });
  for (const id of projects) byId('gate-known').append(new Option(id));
  byId('gate-project').hidden = false;
  byId('gate-project').addEventListener('submit', (event) => {
    event.preventDefault();
    open(byId('gate-id').value.trim());
  });
  byId('gate-id').focus();

  function open(id) {
    location.replace(`?${new URLSearchParams({ project: id })}`);
  }
}

function showGate(state, word, { title, text }) {
  byId('skeleton').hidden = true;
  byId('gate').hidden = false;
  byId('gate-title').textContent = title;
  byId('gate-text').textContent = text;
  byId('pill').dataset.state = state;
  byId('pill-text').textContent = word;
}

/** Tells those who listen to the page how jobs ended, in one sentence for a burst. */
const ended = { ready: 0, failed: 0, canceled: 0 };
let telling = null;

function announce(tasks) {
  for (const { status } of tasks) if (status in ended) ended[status] += 1;
  if (telling !== null || Object.values(ended).every((number) => number === 0)) return;
  telling = setTimeout(() => {
    telling = null;
    const parts = Object.entries(ended).filter(([, number]) => number > 0);
    byId('news').textContent = parts
      .map(([status, number]) => `${count(number, 'job')} ${status}`)
      .join(', ');
    for (const status of Object.keys(ended)) ended[status] = 0;
  }, 1000);
}

async function copy({ target }) {
  const button = target.closest?.('.copy');
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.textContent);
  } catch {
    // Without a clipboard the text stays selectable.
    getSelection().selectAllChildren(button);
    return;
  }
  button.classList.add('copied');
  byId('news').textContent = `Copied the ${button.dataset.what}`;
  setTimeout(() => button.classList.remove('copied'), 1500);
}
