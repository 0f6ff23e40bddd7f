/** What stands where, as the server has it: it checks every change, and the page shows what it has confirmed. */

import { decoded } from "./dom.js";

/** @typedef {import("./things.js").Place} Place */

export class Placing {
  /** @type {Place | null} What the server has confirmed last. */
  confirmed = null;
  /** @type {ImageBitmap | null} The world from above. */
  ground = null;
  /** Metres across it. */
  extent = 5;
  #open = 0;
  /** @type {Place | null} What `ground` shows. */
  #shown = null;

  /** @param {(message: Record<string, unknown>) => boolean} send Says whether there was somebody to send it to. */
  constructor(send) {
    this.send = send;
  }

  /** Whether there are changes that the server has not answered yet, or whose image is not there yet. */
  get pending() {
    return this.#open > 0 || this.#shown !== this.confirmed;
  }

  /**
   * A random layout.
   * @param {string} text That names what is to be there.
   * @param {string | null} corpus
   * @param {number} seed
   */
  stage(text, corpus, seed) {
    if (this.send({ type: "stage", text, corpus, seed })) this.#open += 1;
  }

  /** @param {import("./recording.js").Place} place */
  place({ layout, start, seed, vehicle }) {
    if (this.send({ type: "place", layout, start, seed, vehicle })) this.#open += 1;
  }

  /**
   * The server has placed everything.
   * @param {Place & {overhead: string, extent: number}} message
   * @returns {Promise<boolean>} Whether the image is there, and nothing newer is on its way.
   */
  async placed({ layout, start, seed, vehicle, overhead, extent }) {
    this.#open = Math.max(0, this.#open - 1);
    const confirmed = { layout, start, seed, vehicle };
    this.confirmed = confirmed;
    const image = await decoded(overhead);
    if (this.confirmed !== confirmed) return false;
    [this.ground, this.extent, this.#shown] = [image, extent, confirmed];
    return !this.pending;
  }

  /** The server has refused a change. */
  refused() {
    this.#open = Math.max(0, this.#open - 1);
  }

  /** The server is gone, and its answers with it. */
  forget() {
    this.#open = 0;
  }
}
