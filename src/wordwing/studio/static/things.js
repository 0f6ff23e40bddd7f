/** The landmarks and the drone's start: a list to choose from, keys and buttons that move, turn, add and remove. */

import { byId, debounced, make } from "./dom.js";
import { inside, wrapped } from "./geometry.js";

/** @typedef {import("./recording.js").Place & {layout: {landmarks: import("./world.js").Landmark[]}}} Place */
/** @typedef {number | "drone"} Which A landmark's number, or the drone. */

/** Metres and radians of one press of a key. */
const STEP = 0.1, TURN = Math.PI / 12;

/** Milliseconds without a further key until a change is sent. */
const PATIENCE = 300;

/** @type {Record<string, [number, number]>} World x and y that an arrow key adds. */
const MOVES = { ArrowUp: [STEP, 0], ArrowDown: [-STEP, 0], ArrowLeft: [0, STEP], ArrowRight: [0, -STEP] };

/** @type {Record<string, number>} */
const TURNS = { ArrowLeft: TURN, ArrowUp: TURN, ArrowRight: -TURN, ArrowDown: -TURN };

/** @param {number} metres */
const rounded = (metres) => Math.round(1000 * metres) / 1000;

export class Things {
  /**
   * @param {{redraw: () => void, commit: (place: Place) => void, edited: () => void}} tell `edited` comes before the
   *   first change, `commit` when a change is complete.
   */
  constructor(tell) {
    this.tell = tell;
    /** @type {Place | null} */
    this.place = null;
    /** @type {Which | null} */
    this.chosen = null;
    this.enabled = false;
    this.most = 40;
    /** @type {Map<string, number>} Radius of each kind of landmark, metres. */
    this.kinds = new Map();
    this.list = byId("things-list");
    this.pad = byId("pad");
    this.said = byId("things-said");
    this.adder = /** @type {HTMLSelectElement} */ (byId("add"));
    this.#soon = debounced(() => this.flush(), PATIENCE);
    this.pad.addEventListener("click", ({ target }) => {
      const key = target instanceof HTMLElement ? target.dataset.key : undefined;
      if (!key || this.chosen === null) return;
      if (key === "Left" || key === "Right") this.press(`Arrow${key}`, true);
      else this.press(key, false);
    });
    this.listen(this.list);
    this.adder.addEventListener("change", () => {
      if (this.adder.value) this.add(this.adder.value);
      this.adder.value = "";
    });
  }

  /**
   * Let the keys that move what is chosen work in an element.
   * @param {HTMLElement} element
   */
  listen(element) {
    element.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey || this.chosen === null) return;
      if (this.press(event.key, event.shiftKey)) event.preventDefault();
    });
  }

  /** @type {() => void} */
  #soon;
  #changed = false;

  /** Whether there are changes that the server has not been told. */
  get changed() {
    return this.#changed;
  }

  /**
   * Which kinds there are to add.
   * @param {{name: string, radius: number, set?: string}[]} landmarks
   * @param {number} most
   */
  offer(landmarks, most) {
    this.most = most;
    this.kinds = new Map(landmarks.map(({ name, radius }) => [name, radius]));
    this.adder.replaceChildren(make("option", { value: "" }, "a landmark…"));
    for (const set of new Set(landmarks.map((landmark) => landmark.set))) {
      const names = landmarks.filter((landmark) => landmark.set === set).map(({ name }) => name);
      this.adder.append(
        make("optgroup", { label: set ?? "landmarks" }, ...names.map((name) => make("option", { value: name }, name))),
      );
    }
  }

  /** @param {string} name */
  radius(name) {
    return this.kinds.get(name) ?? 0.35;
  }

  /** @param {Place} place What the server has placed. */
  set(place) {
    this.#changed = false;
    this.place = structuredClone(place);
    if (typeof this.chosen === "number" && this.chosen >= place.layout.landmarks.length) this.chosen = null;
    this.render();
  }

  /** @param {boolean} enabled */
  enable(enabled) {
    this.enabled = enabled;
    for (const control of document.querySelectorAll("#things button, #things select")) {
      if (control.id !== "save") control.toggleAttribute("disabled", !enabled);
    }
    this.render();
  }

  /** @param {Which} which */
  at(which) {
    const place = /** @type {Place} */ (this.place);
    return which === "drone" ? place.start : place.layout.landmarks[which];
  }

  /** @param {Which} which */
  name(which) {
    return which === "drone" ? "Drone" : (this.place?.layout.landmarks[which]?.name ?? "");
  }

  /** @param {Which | null} which */
  choose(which) {
    this.chosen = which;
    this.render();
    this.tell.redraw();
  }

  /**
   * Put something somewhere, as far as the fences let it.
   * @param {Which} which
   * @param {{x?: number, y?: number, yaw?: number}} where
   * @param {"now" | "soon" | "later"} send When the server is told; later: `flush` is still to come.
   */
  put(which, { x, y, yaw }, send) {
    if (!this.enabled || !this.place) return;
    this.#begin();
    const thing = this.at(which);
    const margin = which === "drone" ? 0.15 : 0.3;
    if (x !== undefined) thing.x = rounded(inside(x, margin));
    if (y !== undefined) thing.y = rounded(inside(y, margin));
    if (yaw !== undefined) thing.yaw = rounded(wrapped(yaw));
    this.render();
    this.tell.redraw();
    if (send === "now") this.flush();
    if (send === "soon") this.#soon();
  }

  /**
   * A key for what is chosen.
   * @param {string} key
   * @param {boolean} shift
   * @returns {boolean} Whether it means something.
   */
  press(key, shift) {
    const which = this.chosen;
    if (which === null || !this.place || !this.enabled) return false;
    const { x, y, yaw = 0 } = this.at(which);
    if (key === "Delete" || key === "Backspace") this.remove(which);
    else if (shift && key in TURNS) this.put(which, { yaw: yaw + TURNS[key] }, "soon");
    else if (!shift && key in MOVES) this.put(which, { x: x + MOVES[key][0], y: y + MOVES[key][1] }, "soon");
    else return false;
    return true;
  }

  /** @param {Which} which */
  remove(which) {
    if (which === "drone" || !this.place) return;
    this.#begin();
    const focused = this.list.contains(document.activeElement);
    const [gone] = this.place.layout.landmarks.splice(which, 1);
    const left = this.place.layout.landmarks.length;
    this.chosen = left ? Math.min(which, left - 1) : "drone";
    this.render();
    this.said.textContent = `${gone.name} removed.`;
    if (focused) this.#focus();
    this.flush();
  }

  /** @param {string} name Of a kind of landmark, which is put where there is most room. */
  add(name) {
    if (!this.place) return;
    const { landmarks } = this.place.layout;
    if (landmarks.length >= this.most) {
      this.said.textContent = `There can be at most ${this.most} landmarks.`;
      return;
    }
    this.#begin();
    let best = { x: 0, y: 0, room: -Infinity };
    for (let x = -1.7; x <= 1.7; x += 0.2) {
      for (let y = -1.7; y <= 1.7; y += 0.2) {
        const others = landmarks.map((each) => Math.hypot(each.x - x, each.y - y) - this.radius(each.name));
        const start = Math.hypot(this.place.start.x - x, this.place.start.y - y) - 0.3;
        const room = Math.min(start, 1.2, ...others) - 0.1 * Math.hypot(x, y);
        if (room > best.room) best = { x: rounded(x), y: rounded(y), room };
      }
    }
    landmarks.push({ name, x: best.x, y: best.y, yaw: 0 });
    this.chosen = landmarks.length - 1;
    this.render();
    this.said.textContent = `${name} added.`;
    this.flush();
  }

  /** Tell the server what has changed. */
  flush() {
    if (!this.#changed || !this.place) return;
    this.#changed = false;
    if (this.chosen !== null) {
      const { x, y, yaw = 0 } = this.at(this.chosen);
      const turn = Math.round((180 * yaw) / Math.PI);
      this.said.textContent = `${this.name(this.chosen)}: x ${x.toFixed(2)} m, y ${y.toFixed(2)} m, turned ${turn}°.`;
    }
    this.tell.commit(structuredClone(this.place));
  }

  #begin() {
    if (!this.#changed) this.tell.edited();
    this.#changed = true;
  }

  #focus() {
    const buttons = /** @type {NodeListOf<HTMLElement>} */ (this.list.querySelectorAll("button"));
    buttons[this.chosen === "drone" ? 0 : Number(this.chosen) + 1]?.focus();
  }

  /** Make the list agree with the place; buttons stay, so that focus does. */
  render() {
    if (!this.place) return;
    /** @type {Which[]} */
    const all = ["drone", ...this.place.layout.landmarks.keys()];
    while (this.list.children.length > all.length) this.list.lastElementChild?.remove();
    while (this.list.children.length < all.length) {
      const which = all[this.list.children.length];
      const button = make("button", { type: "button" }, make("b"), make("span", { class: "value" }));
      const choose = () => this.chosen !== which && this.choose(which);
      button.addEventListener("click", choose);
      button.addEventListener("focus", choose);
      button.toggleAttribute("disabled", !this.enabled);
      this.list.append(make("li", {}, button));
    }
    all.forEach((which, row) => {
      const button = /** @type {HTMLElement} */ (this.list.children[row].firstElementChild);
      const { x, y } = this.at(which);
      button.setAttribute("aria-pressed", String(which === this.chosen));
      button.setAttribute("aria-describedby", "things-help");
      button.children[0].textContent = this.name(which);
      button.children[1].textContent = `${x.toFixed(2)}, ${y.toFixed(2)}`.replaceAll("-", "−");
    });
    this.pad.hidden = this.chosen === null;
    const remover = /** @type {HTMLButtonElement} */ (this.pad.querySelector("[data-key=Delete]"));
    const focused = document.activeElement === remover;
    remover.disabled = this.chosen === "drone" || !this.enabled;
    if (focused && remover.disabled && this.enabled) this.#focus(); // or the keyboard would be lost
  }
}
