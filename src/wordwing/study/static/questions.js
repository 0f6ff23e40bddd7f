/** The three questions, and the box for a bad instruction. */

import { byId, make } from "./dom.js";

/** @typedef {{key: string, text: string, answers: string[]}} Question */
/** @typedef {import("./rating.js").Feedback} Feedback */
/**
 * @typedef {object} Answers
 * @property {number} path
 * @property {number} goal
 * @property {number} efficiency
 * @property {boolean} unclear
 * @property {number} seconds How long it took.
 */

export class Questions {
  /**
   * @param {Question[]} questions
   * @param {string} unclear What the box says.
   */
  constructor(questions, unclear) {
    this.keys = questions.map(({ key }) => key);
    /** @type {Map<string, HTMLFieldSetElement>} */
    this.groups = new Map();
    this.box = /** @type {HTMLInputElement} */ (byId("unclear"));
    byId("unclear-text").textContent = unclear;
    const all = questions.map((question, place) => this.#group(question, place + 1));
    byId("questions").replaceChildren(...all);
  }

  /**
   * @param {Question} question
   * @param {number} number
   */
  #group({ key, text, answers }, number) {
    const choices = answers.map((words, place) => {
      const score = String(place + 1);
      const radio = make("input", { type: "radio", name: key, value: score });
      return make("label", {}, radio, make("b", {}, score), make("span", {}, words));
    });
    const group = /** @type {HTMLFieldSetElement} */ (
      make(
        "fieldset",
        { role: "radiogroup", "aria-required": "true", "aria-describedby": `${key}-said` },
        make("legend", {}, `${number}. ${text}`),
        make("div", { class: "scale" }, ...choices),
        make("p", { id: `${key}-said`, class: "said" }),
      )
    );
    group.addEventListener("change", () => this.#say(key, ""));
    group.addEventListener("keydown", (event) => this.#press(group, event));
    this.groups.set(key, group);
    return group;
  }

  /**
   * A digit chooses among the answers that the keyboard is at; elsewhere digits mean nothing.
   * @param {HTMLFieldSetElement} group
   * @param {KeyboardEvent} event
   */
  #press(group, event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const radio = [...group.querySelectorAll("input")].find(({ value }) => value === event.key);
    radio?.focus();
    radio?.click();
  }

  /**
   * Show answers, or none.
   * @param {Partial<Answers> | null} answers
   */
  show(answers) {
    for (const [key, group] of this.groups) {
      group.disabled = false;
      const score = String(answers?.[/** @type {"path"} */ (key)] ?? "");
      for (const radio of group.querySelectorAll("input")) radio.checked = radio.value === score;
      this.#say(key, "");
    }
    this.box.disabled = false;
    this.box.checked = answers?.unclear ?? false;
  }

  /** What has been answered so far, without the time. */
  get answers() {
    const entries = [...this.groups].flatMap(([key, group]) => {
      const chosen = group.querySelector("input:checked");
      return chosen ? [[key, Number(/** @type {HTMLInputElement} */ (chosen).value)]] : [];
    });
    return { ...Object.fromEntries(entries), unclear: this.box.checked };
  }

  /** Whether all questions are answered; if not, says where one is missing and goes there. */
  complete() {
    const missing = [...this.groups].filter(([, group]) => !group.querySelector("input:checked"));
    for (const [key, group] of missing) {
      this.#say(key, "Please choose an answer.");
      group.setAttribute("aria-invalid", "true");
    }
    missing[0]?.[1].querySelector("input")?.focus();
    return missing.length === 0;
  }

  /**
   * Tell how practice answers fit; they cannot be changed any more.
   * @param {Feedback[]} feedback
   */
  tell(feedback) {
    for (const { key, fits, text } of feedback) {
      this.#say(key, text, fits === null ? "told" : fits ? "fits" : "misses");
    }
    for (const group of this.groups.values()) group.disabled = true;
    this.box.disabled = true;
  }

  /**
   * @param {string} key
   * @param {string} text
   * @param {string} kind
   */
  #say(key, text, kind = "missing") {
    const said = byId(`${key}-said`);
    said.textContent = text;
    said.dataset.kind = kind;
    this.groups.get(key)?.removeAttribute("aria-invalid");
  }
}
