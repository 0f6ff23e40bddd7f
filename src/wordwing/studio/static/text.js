/** The box for instructions: words that nobody knows and slips are underlined as one types, what is not there is named. */

import { byId, debounced, make } from "./dom.js";

/** Milliseconds without a key until the words are looked up. */
const PATIENCE = 200;

/** @typedef {[number, number]} Range Of UTF-16 code units, as strings count them; the end is not included. */
/** @typedef {[number, number, string]} Slip A range, and the word that the policy reads there. */
/**
 * @typedef {object} Words What the server says of a text.
 * @property {number} id Of the question.
 * @property {Range[]} unknown Words that the policy does not know.
 * @property {Slip[]} slips Misspelt words that it reads as others.
 * @property {string[]} absent What is named and does not stand in the layout.
 * @property {string[]} worlds Kinds of worlds that have all that is named.
 */

export class TextBox {
  /**
   * @param {(question: {text: string, policy: string, id: number}) => void} ask Answers come through `answer`.
   * @param {() => {name: string, title: string}[]} policies Those who fly.
   * @param {(worlds: string[]) => void} stage Asked for a layout with what the text names, of one of these worlds.
   */
  constructor(ask, policies, stage) {
    this.ask = ask;
    this.policies = policies;
    this.stage = stage;
    this.area = /** @type {HTMLTextAreaElement} */ (byId("text"));
    this.under = byId("marks");
    this.named = byId("unknown");
    /** @type {Map<string, {unknown: Range[], slips: Slip[]}>} By policy. */
    this.marked = new Map();
    const soon = debounced(() => this.look(), PATIENCE);
    this.area.addEventListener("input", () => {
      // What stands before the first change keeps its line, the rest is looked up again.
      const now = this.area.value;
      let kept = 0;
      while (kept < now.length && now[kept] === this.#shown[kept]) kept += 1;
      for (const [policy, { unknown, slips }] of this.marked) {
        const before = (/** @type {Range | Slip} */ [, end]) => end < kept;
        this.marked.set(policy, { unknown: unknown.filter(before), slips: slips.filter(before) });
      }
      this.#render();
      soon();
    });
    this.area.addEventListener("scroll", () => (this.under.scrollTop = this.area.scrollTop));
  }

  #shown = "";
  #enabled = false;
  /** What stands below the box, to leave it alone where nothing has changed. */
  #said = "";
  /** @type {Pick<Words, "absent" | "worlds">} */
  #absent = { absent: [], worlds: [] };
  #asked = 0;
  /** @type {Map<number, {text: string, title: string}>} */
  #questions = new Map();

  get value() {
    return this.area.value.replaceAll(/\s+/g, " ").trim();
  }

  /** @param {string} text */
  set value(text) {
    this.area.value = text;
    this.forget();
  }

  /** @param {boolean} enabled Whether a layout can be drawn now. */
  enable(enabled) {
    this.#enabled = enabled;
    for (const button of this.named.querySelectorAll("button")) button.disabled = !enabled;
  }

  /** Ask everyone who flies, about the layout that the server has. */
  look() {
    this.#questions.clear();
    for (const { name, title } of this.policies()) {
      this.#asked += 1;
      this.#questions.set(this.#asked, { text: this.area.value, title });
      this.ask({ text: this.area.value, policy: name, id: this.#asked });
    }
  }

  /** @param {Words} words An answer; one to something older is dropped. */
  answer({ id, unknown, slips, absent, worlds }) {
    const question = this.#questions.get(id);
    if (question?.text !== this.area.value) return;
    this.marked.set(question.title, { unknown, slips });
    this.#absent = { absent, worlds };
    this.#render();
    this.#name();
  }

  /** Forget what policies know, because others fly now. */
  forget() {
    this.marked.clear();
    this.#render();
    this.look();
  }

  #render() {
    const text = this.area.value;
    /** @type {Map<number, string>} The class of each marked character; what nobody knows outdoes a slip. */
    const marked = new Map();
    for (const { unknown, slips } of this.marked.values()) {
      for (const [begin, end] of slips) for (let at = begin; at < end; at += 1) marked.set(at, "slip");
      for (const [begin, end] of unknown) for (let at = begin; at < end; at += 1) marked.set(at, "unknown-word");
    }
    /** @type {(Node | string)[]} */
    const parts = [];
    for (let at = 0; at < text.length; ) {
      let end = at + 1;
      const kind = marked.get(at);
      while (end < text.length && marked.get(end) === kind) end += 1;
      const words = text.slice(at, end);
      parts.push(kind ? make("mark", { class: kind }, words) : words);
      at = end;
    }
    this.under.replaceChildren(...parts, "\n");
    this.under.scrollTop = this.area.scrollTop;
    this.#shown = text;
  }

  /** Name the marked words for those who do not see lines, and what the text speaks of that is not there. */
  #name() {
    const unread = [];
    const read = [];
    const once = (/** @type {string[]} */ words) => [...new Set(words)].join(", ");
    for (const [policy, { unknown, slips }] of this.marked) {
      const word = (/** @type {Range | Slip} */ [begin, end]) => this.#shown.slice(begin, end);
      if (unknown.length) unread.push(`${policy} does not know: ${once(unknown.map(word))}.`);
      if (slips.length) read.push(`${policy} reads: ${once(slips.map((slip) => `${word(slip)} → ${slip[2]}`))}.`);
    }
    const said = JSON.stringify([unread, read, this.#absent]);
    if (said === this.#said) return; // or it would be read out again
    this.#said = said;
    const hint = read.length ? [make("span", { class: "hint" }, ` ${read.join(" ")}`)] : [];
    this.named.replaceChildren(...(unread.length ? [unread.join(" ")] : []), ...hint, ...this.#missing());
  }

  /** @returns {HTMLElement[]} A sentence about what is not there and, where it helps, a button. */
  #missing() {
    const { absent, worlds } = this.#absent;
    if (!absent.length) return [];
    const called = absent.map((name) => `“${name}”`).join(" or ");
    const help = worlds.length ? "" : " No kind of world has all of it; add it under Landmarks and drone.";
    const sentence = make("span", { class: "hint" }, ` Nothing here is called ${called}.${help} `);
    if (!worlds.length) return [sentence];
    const them = absent.length > 1 ? "them" : "it";
    const button = make("button", { type: "button", class: "small" }, `Draw a layout with ${them}`);
    button.toggleAttribute("disabled", !this.#enabled);
    button.addEventListener("click", () => {
      this.area.focus({ preventScroll: true }); // the button goes with the sentence
      this.stage(worlds);
    });
    return [sentence, button];
  }
}
