/** Which buttons can be pressed when, what the status line says, and notices about what went wrong. */

import { byId } from "./dom.js";

/** @typedef {"connecting" | "lost" | "idle" | "flying" | "paused" | "ended"} Phase */
/** @typedef {import("./world.js").Layers} Layers */

/** @type {Record<string, Phase[]>} When each button can be pressed. */
const BUTTONS = {
  fly: ["idle", "ended"],
  then: ["ended"],
  pause: ["flying", "paused"],
  step: ["flying", "paused"],
  stop: ["flying", "paused"],
  reset: ["flying", "paused", "ended"],
};

export class Desk {
  /**
   * @param {Phase} phase
   * @param {string} words For the status line.
   * @param {string} [spoken] The same at length, for those who hear it.
   */
  turn(phase, words, spoken) {
    document.body.dataset.phase = phase;
    const focused = document.activeElement;
    for (const [id, phases] of Object.entries(BUTTONS)) {
      byId(id).toggleAttribute("disabled", !phases.includes(phase));
    }
    if (focused instanceof HTMLButtonElement && focused.disabled && focused.id in BUTTONS) {
      // A button that is disabled while it has the focus passes it on, so that the keyboard is not lost.
      const next = ["pause", "fly", "text"].map(byId).find((element) => !element.matches(":disabled"));
      next?.focus({ preventScroll: true });
    }
    byId("pause").textContent = phase === "paused" ? "Go on" : "Pause";
    this.say(words, spoken);
  }

  /**
   * @param {string} words
   * @param {string} [spoken]
   */
  say(words, spoken = words) {
    byId("status").textContent = words;
    byId("announce").textContent = spoken;
  }

  /**
   * @param {string} words One sentence; "" takes the notice away.
   * @param {string} [action] What can be done about it.
   * @param {() => void} [act]
   */
  notice(words, action, act) {
    const button = /** @type {HTMLButtonElement} */ (byId("notice-action"));
    byId("notice-text").textContent = words;
    byId("notice").hidden = !words;
    button.hidden = !action;
    button.textContent = action ?? "";
    button.onclick = act ?? null;
  }

  /** What is to be shown in the views from above. @returns {Layers} */
  get layers() {
    const field = (/** @type {string} */ name) =>
      /** @type {HTMLInputElement} */ (document.querySelector(`#layers [name=${name}]`));
    const on = (/** @type {string} */ name) => field(name).checked;
    const opacity = Number(field("opacity").value);
    return { path: on("path"), goal: on("goal"), view: on("view"), flown: on("flown"), names: on("names"), opacity };
  }
}
