/** One drone on the page: its view from above, images, curves and verdict. Two of them fly side by side. */

import { byId, make, percent, sentence } from "./dom.js";
import { Panels } from "./maps.js";
import { Plots } from "./plots.js";
import { PERIOD } from "./recording.js";
import { WorldView } from "./world.js";

/** @typedef {import("./recording.js").Recording} Recording */
/** @typedef {import("./world.js").Scene} Scene */

/** The longest instruction that stands above a flight in full, characters. */
const QUOTE = 200;

const HINT = "Drag the landmarks and the drone where you like, then press Fly.";

export class Lane {
  /**
   * @param {number} number 0 or 1.
   * @param {string} policy Its title.
   * @param {(tick: number) => void} seek Told where in time somebody pointed.
   */
  constructor(number, policy, seek) {
    const template = /** @type {HTMLTemplateElement} */ (byId("lane"));
    const copy = /** @type {DocumentFragment} */ (template.content.cloneNode(true));
    this.element = /** @type {HTMLElement} */ (copy.firstElementChild);
    this.number = number;
    this.policy = policy;
    const part = (/** @type {string} */ name) => /** @type {HTMLElement} */ (this.element.querySelector(name));
    part("h3").textContent = policy;
    this.element.setAttribute("aria-label", policy);
    this.now = part(".now");
    this.quote = part(".quote");
    this.verdict = part(".verdict");
    this.clauses = part(".clauses");
    this.canvas = /** @type {HTMLCanvasElement} */ (part(".overhead"));
    this.view = new WorldView(this.canvas);
    this.images = new Panels(part(".images"), part(".explain"), number);
    this.plots = new Plots(part(".plots"), (share) => seek(Math.floor(share * this.plots.span)));
    this.bars = [...this.element.querySelectorAll(".bar")].map((bar) => ({
      meter: /** @type {HTMLElement} */ (bar.querySelector(".meter")),
      fill: /** @type {HTMLElement} */ (bar.querySelector("i")),
      words: /** @type {HTMLElement} */ (bar.querySelector(".value")),
      name: bar.querySelector(".bar-name")?.textContent ?? "",
    }));
    for (const { meter, name } of this.bars) meter.setAttribute("aria-label", name);
  }

  /**
   * Show a moment.
   * @param {Recording | null} recording
   * @param {number} tick
   * @param {Omit<Scene, "past" | "coming" | "peaks">} world
   */
  show(recording, tick, world) {
    const past = recording?.until(this.number, tick) ?? [];
    const all = recording?.lanes[this.number] ?? [];
    const latest = past.at(-1);
    const frame = latest?.frame ?? null;
    /** @type {[number, number]} */
    const peaks = [0, 0];
    for (const { frame: each, leg } of all) {
      if (leg !== latest?.leg) continue;
      peaks.forEach((peak, which) => (peaks[which] = Math.max(peak, each.peaks?.[which] ?? 0)));
    }
    this.view.show({ ...world, past, coming: all.slice(past.length), peaks });
    this.images.show(frame, world.grid, world.extent);
    this.plots.show(all, recording?.ticks ?? 0, tick);
    this.bars.forEach(({ meter, fill, words }, which) => {
      const share = frame?.unobserved?.[which];
      const known = typeof share === "number";
      fill.style.width = known ? `${100 * share}%` : "0";
      meter.setAttribute("aria-valuenow", String(known ? Math.round(100 * share) : 0));
      words.textContent = known ? percent(share) : "–";
    });
    this.#words(recording, latest, past.length === all.length);
    const { x, y, yaw } = this.view.drone;
    const names = world.landmarks.map((landmark) => landmark.name).join(", ") || "no landmarks";
    const degrees = Math.round((180 * yaw) / Math.PI);
    this.canvas.setAttribute(
      "aria-label",
      `The world from above: ${names}. The drone is at x ${x.toFixed(2)}, y ${y.toFixed(2)} m, heading ${degrees}°.`,
    );
  }

  /**
   * @param {Recording | null} recording
   * @param {import("./recording.js").Kept | undefined} latest
   * @param {boolean} atEnd
   */
  #words(recording, latest, atEnd) {
    const text = latest && recording ? recording.texts[latest.leg] : "";
    this.quote.textContent = text.length > QUOTE ? `${text.slice(0, QUOTE)}…` : text;
    this.now.textContent = latest ? `${(latest.tick * PERIOD).toFixed(1)} s · ${doing(latest.frame)}` : "";
    const ending = latest && recording?.ending(this.number, latest.leg);
    if (ending && (atEnd || latest.frame.stopped)) {
      this.verdict.textContent = `${howEnded(ending)}. ${sentence(ending.verdict)}`;
      this.verdict.dataset.followed = String(ending.followed);
      const lines = ending.clauses.map(({ words, done }) => make("li", { class: done ? "done" : "missed" }, words));
      this.clauses.replaceChildren(...lines);
    } else {
      this.verdict.textContent = latest ? "" : this.number ? "" : HINT;
      delete this.verdict.dataset.followed;
      this.clauses.replaceChildren();
    }
  }
}

/**
 * @param {import("./recording.js").Ending} ending
 * @returns {string} One line on how a flight went, clause by clause.
 */
export function endingWords(ending) {
  const clauses = ending.clauses.map(({ words }) => words).join(", ");
  return `${howEnded(ending)}. ${clauses && `${sentence(clauses)} `}${sentence(ending.verdict)}`;
}

/** @param {import("./recording.js").Ending} ending */
function howEnded({ reason, seconds, metres }) {
  const how = { stop: "Decided to stop", steps: "Had not stopped when its time was up", stopped: "Stopped by hand" };
  const words = how[/** @type {keyof typeof how} */ (reason)] ?? "Ended";
  return `${words} after ${seconds.toFixed(1)} s and ${metres.toFixed(2)} m`;
}

/** @param {import("./socket.js").Frame} frame */
function doing({ setpoint, settling, step }) {
  if (!settling) return `decision ${step + 1}`;
  return setpoint ? "coming to rest" : "at rest";
}
