/** The box for instructions: words that a policy does not know are underlined as one types. */

import { byId, debounced, make } from "./dom.js";

/** Milliseconds without a key until the words are looked up. */
const PATIENCE = 200;

/** @typedef {[number, number]} Range Of UTF-16 code units, as strings count them; the end is not included. */

export class TextBox {
  /**
   * @param {(question: {text: string, policy: string, id: number}) => void} ask Answers come through `answer`.
   * @param {() => {name: string, title: string}[]} policies Those who fly.
   */
  constructor(ask, policies) {
    this.ask = ask;
    this.policies = policies;
    this.area = /** @type {HTMLTextAreaElement} */ (byId("text"));
    this.under = byId("marks");
    this.named = byId("unknown");
    /** @type {Map<string, Range[]>} By policy. */
    this.unknown = new Map();
    const soon = debounced(() => this.#look(), PATIENCE);
    this.area.addEventListener("input", () => {
      // What stands before the first change keeps its line, the rest is looked up again.
      const now = this.area.value;
      let kept = 0;
      while (kept < now.length && now[kept] === this.#shown[kept]) kept += 1;
      for (const [policy, ranges] of this.unknown) {
        this.unknown.set(policy, ranges.filter(([, end]) => end < kept));
      }
      this.#render();
      soon();
    });
    this.area.addEventListener("scroll", () => (this.under.scrollTop = this.area.scrollTop));
  }

  #shown = "";
  #asked = 0;
  /** @type {Map<number, {text: string, title: string}>} */
  #questions = new Map();

  get value() {
    return this.area.value.replaceAll(/\s+/g, " ").trim();
  }

  /** @param {string} text */
  set value(text) {
    this.area.value = text;
    this.unknown.clear();
    this.#render();
    this.#look();
  }

  /** Ask everyone who flies. */
  #look() {
    this.#questions.clear();
    for (const { name, title } of this.policies()) {
      this.#asked += 1;
      this.#questions.set(this.#asked, { text: this.area.value, title });
      this.ask({ text: this.area.value, policy: name, id: this.#asked });
    }
  }

  /**
   * @param {number} id Of the question; an answer to something older is dropped.
   * @param {Range[]} ranges
   */
  answer(id, ranges) {
    const question = this.#questions.get(id);
    if (question?.text !== this.area.value) return;
    this.unknown.set(question.title, ranges);
    this.#render();
    this.#name();
  }

  /** Forget what policies know, because others fly now. */
  forget() {
    this.unknown.clear();
    this.#render();
    this.#look();
  }

  #render() {
    const text = this.area.value;
    const marked = new Set();
    for (const ranges of this.unknown.values()) {
      for (const [begin, end] of ranges) for (let at = begin; at < end; at += 1) marked.add(at);
    }
    /** @type {(Node | string)[]} */
    const parts = [];
    for (let at = 0; at < text.length; ) {
      let end = at + 1;
      while (end < text.length && marked.has(end) === marked.has(at)) end += 1;
      const words = text.slice(at, end);
      parts.push(marked.has(at) ? make("mark", {}, words) : words);
      at = end;
    }
    this.under.replaceChildren(...parts, "\n");
    this.under.scrollTop = this.area.scrollTop;
    this.#shown = text;
  }

  /** Name the unknown words for those who do not see lines. */
  #name() {
    const sentences = [];
    for (const [policy, ranges] of this.unknown) {
      const words = [...new Set(ranges.map(([begin, end]) => this.#shown.slice(begin, end)))];
      if (words.length) sentences.push(`${policy} does not know: ${words.join(", ")}.`);
    }
    const text = sentences.join(" ");
    if (this.named.textContent !== text) this.named.textContent = text;
  }
}
