/** How long a judgement takes; the time in which the page is hidden does not count. */

const LONGEST = 86_400;

export class Stopwatch {
  constructor() {
    this.before = 0;
    /** @type {number | null} */
    this.since = null;
    document.addEventListener("visibilitychange", () => (document.hidden ? this.#hold() : this.#go()));
  }

  /** @param {number} seconds That it has taken already. */
  start(seconds = 0) {
    this.before = seconds;
    this.since = null;
    if (!document.hidden) this.#go();
  }

  /** So far. */
  get seconds() {
    const now = this.since === null ? 0 : (performance.now() - this.since) / 1000;
    return Math.min(LONGEST, Math.round(10 * (this.before + now)) / 10);
  }

  #go() {
    this.since ??= performance.now();
  }

  #hold() {
    this.before = this.seconds;
    this.since = null;
  }
}
