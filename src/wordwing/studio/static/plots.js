/** Curves over time: what was flown, how sure the policy is to stop, and how much it looks for out of sight. */

import { BLUISH_GREEN, FLOWN, VERMILLION } from "./colours.js";
import { make, percent, sized } from "./dom.js";

/** @typedef {import("./recording.js").Kept} Kept */
/** @typedef {import("./socket.js").Frame} Frame */

/**
 * @type {{title: string, symbol: string, raised: string, low: number, high: number, colour: string, mark?: number,
 *   value: (frame: Frame) => number | null | undefined, words: (value: number) => string}[]}
 */
const ROWS = [
  {
    title: "forward", symbol: "v", raised: "", low: 0, high: 0.7, colour: FLOWN,
    value: (frame) => frame.setpoint?.[0], words: (value) => `${value.toFixed(2)} m/s`,
  },
  {
    title: "turn left", symbol: "ω", raised: "", low: -1, high: 1, colour: FLOWN,
    value: (frame) => frame.setpoint?.[1], words: (value) => `${value.toFixed(2).replace("-", "−")} rad/s`,
  },
  {
    title: "stop?", symbol: "p", raised: "stop", low: 0, high: 1, colour: VERMILLION, mark: 0.5,
    value: (frame) => frame.stop, words: percent,
  },
  {
    title: "goal unseen", symbol: "p", raised: "oob", low: 0, high: 1, colour: BLUISH_GREEN,
    value: (frame) => frame.unobserved?.[1], words: percent,
  },
];

export class Plots {
  /**
   * @param {HTMLElement} place
   * @param {(share: number) => void} seek Told where somebody pointed, from 0 to 1.
   */
  constructor(place, seek) {
    this.rows = ROWS.map(({ title, symbol, raised }) => {
      const canvas = /** @type {HTMLCanvasElement} */ (make("canvas", { role: "img", "aria-label": title }));
      const value = make("span", { class: "value" }, "–");
      const label = make("span", { class: "plot-name" }, `${title} `, make("var", {}, symbol, make("sup", {}, raised)));
      place.append(make("div", { class: "plot" }, label, canvas, value));
      canvas.addEventListener("pointerdown", (event) => {
        canvas.setPointerCapture(event.pointerId);
        seek(event.offsetX / canvas.clientWidth);
      });
      canvas.addEventListener("pointermove", (event) => {
        if (canvas.hasPointerCapture(event.pointerId)) seek(event.offsetX / canvas.clientWidth);
      });
      return { canvas, value };
    });
    new ResizeObserver(() => this.#draw()).observe(place);
  }

  /** @type {Kept[]} */
  #kept = [];
  #ticks = 0;
  #now = 0;

  /**
   * @param {Kept[]} kept Everything of the lane.
   * @param {number} ticks How long all lanes are.
   * @param {number} now Tick that is shown.
   */
  show(kept, ticks, now) {
    [this.#kept, this.#ticks, this.#now] = [kept, ticks, now];
    this.#draw();
  }

  #draw() {
    this.rows.forEach(({ canvas, value: output }, number) => {
      const { low, high, colour, mark, value, words, title } = ROWS[number];
      const { context, width, height } = sized(canvas);
      const style = getComputedStyle(canvas);
      const period = width / Math.max(30, this.#ticks);
      const at = (/** @type {number} */ y) => height * (1 - (y - low) / (high - low));
      context.fillStyle = style.getPropertyValue("--plot");
      context.fillRect(0, 0, width, height);
      let latest = null;
      for (const { frame, tick } of this.#kept) {
        const y = value(frame);
        if (typeof y !== "number") continue;
        context.globalAlpha = tick <= this.#now ? 1 : 0.35;
        context.fillStyle = colour;
        const [top, base] = [at(y), at(0)].sort((a, b) => a - b);
        context.fillRect(tick * period, top, Math.max(1, period - 0.5), Math.max(0.75, base - top));
        if (tick <= this.#now) latest = y;
      }
      context.globalAlpha = 1;
      context.strokeStyle = style.getPropertyValue("--muted");
      context.lineWidth = 1;
      if (low < 0) rule(context, at(0), width, []);
      if (mark !== undefined) rule(context, at(mark), width, [3, 3]);
      if (this.#kept.length) {
        context.fillStyle = style.getPropertyValue("--ink");
        context.fillRect(Math.min(width - 1.5, (this.#now + 0.5) * period), 0, 1.5, height);
      }
      output.textContent = latest === null ? "–" : words(latest);
      canvas.setAttribute("aria-label", `${title} over time${latest === null ? "" : `, now ${words(latest)}`}`);
    });
  }

  /** @returns {number} How many ticks the width stands for. */
  get span() {
    return Math.max(30, this.#ticks);
  }
}

/**
 * A level line.
 * @param {CanvasRenderingContext2D} context
 * @param {number} y
 * @param {number} width
 * @param {number[]} dash
 */
function rule(context, y, width, dash) {
  context.setLineDash(dash);
  context.beginPath();
  context.moveTo(0, Math.round(y) + 0.5);
  context.lineTo(width, Math.round(y) + 0.5);
  context.stroke();
  context.setLineDash([]);
}
