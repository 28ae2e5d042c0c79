/** Numbers of the last ten minutes, and the small line that they make. */

export const WINDOW_MS = 600_000;
const WIDTH = 120;
const HEIGHT = 26;
// A page that was just opened draws its first minute wide, or there would be nothing to see.
const SHORTEST_MS = 60_000;
const SVG = 'http://www.w3.org/2000/svg';

export class Trend {
  #points = [];

  push(at, value) {
    this.#points.push([at, value]);
    while (this.#points[0][0] < at - WINDOW_MS) this.#points.shift();
  }

  get points() {
    return this.#points;
  }

  /** Put the line into an svg. Its scale begins at ten, so that one job is no mountain. */
  draw(svg) {
    if (!svg.firstChild) {
      svg.setAttribute('viewBox', `0 0 ${WIDTH} ${HEIGHT}`);
      svg.setAttribute('preserveAspectRatio', 'none');
      for (const name of ['area', 'line']) {
        const path = document.createElementNS(SVG, 'path');
        path.setAttribute('class', name);
        svg.append(path);
      }
    }
    const end = this.#points.at(-1)?.[0] ?? 0;
    const wide = Math.min(WINDOW_MS, Math.max(SHORTEST_MS, end - (this.#points[0]?.[0] ?? end)));
    const top = Math.max(10, ...this.#points.map(([, value]) => value));
    const place = ([at, value]) => [
      (WIDTH * (1 - (end - at) / wide)).toFixed(1),
      (HEIGHT - 1.5 - (HEIGHT - 3) * (value / top)).toFixed(1),
    ];
    const places = this.#points.map(place);
    const line = places.map(([x, y], index) => `${index === 0 ? 'M' : 'L'}${x} ${y}`).join('');
    const [area, stroke] = svg.children;
    stroke.setAttribute('d', line);
    area.setAttribute('d', places.length > 1 ? `${line}L${places.at(-1)[0]} ${HEIGHT}L${places[0][0]} ${HEIGHT}Z` : '');
  }
}
