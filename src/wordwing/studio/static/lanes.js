/** Everyone who flies, side by side. */

import { byId } from "./dom.js";
import { makeDraggable } from "./dragging.js";
import { Lane } from "./lane.js";

/** @typedef {import("./recording.js").Recording} Recording */
/** @typedef {import("./world.js").Scene} Scene */

export class Lanes {
  /** @type {Lane[]} */
  #lanes = [];

  /**
   * @param {import("./things.js").Things} things That can be dragged.
   * @param {(tick: number) => void} seek Told where in time somebody pointed.
   */
  constructor(things, seek) {
    this.things = things;
    this.seek = seek;
  }

  /** @param {string[]} titles Of the policies: one or two. */
  lay(titles) {
    this.#lanes = titles.map((title, number) => new Lane(number, title, this.seek));
    for (const lane of this.#lanes) makeDraggable(lane.view, this.things);
    byId("lanes").replaceChildren(...this.#lanes.map((lane) => lane.element));
    byId("lanes").classList.toggle("two", titles.length > 1);
  }

  /**
   * Show a moment.
   * @param {Recording | null} recording
   * @param {number} tick
   * @param {Omit<Scene, "past" | "coming" | "peaks">} world
   */
  draw(recording, tick, world) {
    for (const lane of this.#lanes) lane.show(recording, tick, world);
  }

  /**
   * Show that a flight goes on, while another moment is looked at.
   * @param {Recording} recording
   * @param {number} tick
   */
  grow(recording, tick) {
    for (const lane of this.#lanes) lane.plots.show(recording.lanes[lane.number], recording.ticks, tick);
  }
}
