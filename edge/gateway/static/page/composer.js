/** The form for new jobs. */

import { count } from './words.js';

const SAMPLES = [
  'A red fox trots through fresh snow at dawn, breath steaming, slow dolly shot',
  'Neon-lit ramen stall in the rain, steam curling past the camera, anamorphic bokeh',
  'A paper boat drifts down a flooded library aisle, warm lamplight',
  'Timelapse of frost growing over a window pane, macro, cold blue light',
  'An astronaut waters tomatoes in a greenhouse on Mars, golden hour',
];

export class Composer {
  #form = document.getElementById('composer');
  #prompt = document.getElementById('prompt');
  #model = document.getElementById('model');
  #trouble = document.getElementById('composer-trouble');
  #feed;

  constructor(feed) {
    this.#feed = feed;
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#one();
    });
    this.#prompt.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) this.#form.requestSubmit();
    });
    document.getElementById('five').addEventListener('click', () => this.#five());
  }

  async #one() {
    const prompt = this.#prompt.value.trim();
    if (prompt === '') {
      this.#complain('Describe the video first, or run five samples.');
      this.#prompt.focus();
      return;
    }
    if (await this.#create([prompt])) {
      this.#prompt.value = '';
      this.#prompt.focus();
    }
  }

  async #five() {
    const prompt = this.#prompt.value.trim();
    const takes = SAMPLES.map((sample, index) => (prompt ? `${prompt} (take ${index + 1})` : sample));
    if (await this.#create(takes)) this.#prompt.value = '';
  }

  /** Creates them all, and tells what could not be created. */
  async #create(prompts) {
    const [provider, model] = this.#model.value.split(' ');
    this.#complain('');
    this.#busy(true);
    try {
      const results = await Promise.allSettled(
        prompts.map((prompt) => this.#feed.createTask({ provider, model, input: { prompt } })),
      );
      const refused = results.filter(({ status }) => status === 'rejected');
      if (refused.length === 0) return true;
      const { reason } = refused[0];
      const which = prompts.length === 1 ? '' : `${count(refused.length, 'job')} could not be created. `;
      const why = reason.status === undefined ? 'The server cannot be reached.' : reason.message;
      this.#complain(which + why);
      return false;
    } finally {
      this.#busy(false);
    }
  }

  #busy(busy) {
    for (const button of this.#form.querySelectorAll('button')) button.disabled = busy;
    this.#form.setAttribute('aria-busy', String(busy));
  }

  #complain(text) {
    this.#trouble.textContent = text;
    this.#trouble.hidden = text === '';
  }
}
