/** Which moment is on the page: the latest while a drone flies, any other one by slider and replay. */

import { byId } from "./dom.js";
import { PERIOD } from "./recording.js";

/** @typedef {import("./recording.js").Recording} Recording */

export class Playback {
  /** @param {() => void} redraw */
  constructor(redraw) {
    this.redraw = redraw;
    /** @type {Recording | null} */
    this.recording = null;
    this.tick = 0;
    this.follows = true;
    this.speed = 1;
    this.button = /** @type {HTMLButtonElement} */ (byId("play"));
    this.slider = /** @type {HTMLInputElement} */ (byId("time"));
    this.clock = byId("clock");
    this.slider.addEventListener("input", () => {
      const tick = Number(this.slider.value); // before anything sets it back
      this.pause();
      this.seek(tick);
    });
    this.button.addEventListener("click", () => (this.#timer ? this.pause() : this.play()));
  }

  #timer = 0;

  get #last() {
    return Math.max(0, (this.recording?.ticks ?? 0) - 1);
  }

  /** @param {Recording | null} recording A new one is shown from its beginning, as it grows. */
  set(recording) {
    this.pause();
    this.recording = recording;
    this.tick = 0;
    this.follows = true;
    this.update();
  }

  /** The recording has grown. */
  grown() {
    if (this.follows && !this.#timer) this.tick = this.#last;
    this.update();
  }

  /** @param {number} tick */
  seek(tick) {
    this.tick = Math.min(this.#last, Math.max(0, tick));
    this.follows = this.tick === this.#last;
    this.update();
    this.redraw();
  }

  play() {
    if (this.tick >= this.#last) this.tick = 0;
    const beat = () => {
      this.#timer = window.setTimeout(beat, (1000 * PERIOD) / this.speed);
      if (this.tick >= this.#last) this.pause();
      else this.seek(this.tick + 1);
    };
    this.#timer = window.setTimeout(beat, (1000 * PERIOD) / this.speed);
    this.seek(this.tick);
  }

  pause() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.update();
  }

  update() {
    const empty = !this.recording || this.recording.empty;
    const words = (/** @type {number} */ tick) => (tick * PERIOD).toFixed(1);
    this.slider.disabled = this.button.disabled = empty;
    this.slider.max = String(this.#last);
    this.slider.value = String(this.tick);
    this.slider.setAttribute("aria-valuetext", `${words(this.tick)} of ${words(this.#last)} seconds`);
    this.clock.textContent = empty ? "0.0 s" : `${words(this.tick)} / ${words(this.#last)} s`;
    this.button.textContent = this.#timer ? "Hold" : "Replay";
  }
}
