/** The choices beside the stage: world, seed, drone, policies. */

import { byId, make } from "./dom.js";

/** @typedef {{name: string, title?: string, card_url?: string}} Policy */
/**
 * @typedef {object} Welcome
 * @property {Policy[]} policies
 * @property {(string | {name: string, title?: string})[]} corpora
 * @property {{name: string, radius: number, nouns: string[]}[]} landmarks
 * @property {Record<string, string[]>} examples
 * @property {{text: number, visitors: number, landmarks: number}} limits
 * @property {string} default_policy
 * @property {{cells: number, size: number}} [grid]
 */

/** @type {Record<string, string>} */
const WORLDS = { cage: "cage", field: "field", house: "furnished room" };

/** @type {Record<string, string>} */
const VEHICLES = {
  sim: "The simulator: still air, exact poses, no delay.",
  lab: "A stand-in for a real laboratory, simulated as well: gusts, noise, delays, another camera.",
};

/** Seeds that are drawn at random are below this, so that they can be read out. */
const SEEDS = 100_000;

export class Settings {
  /**
   * @param {{stage: () => void, vehicle: () => void, policies: () => void, example: (text: string) => void}} tell
   *   Asked for a new random layout; told that the drone or the policies have changed, or of a chosen example.
   */
  constructor(tell) {
    this.corpus = /** @type {HTMLSelectElement} */ (byId("corpus"));
    this.seedField = /** @type {HTMLInputElement} */ (byId("seed"));
    this.named = /** @type {HTMLInputElement} */ (byId("named"));
    this.policy = /** @type {HTMLSelectElement} */ (byId("policy"));
    this.rival = /** @type {HTMLSelectElement} */ (byId("rival"));
    this.examples = /** @type {HTMLSelectElement} */ (byId("examples"));
    this.radios = /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll("[name=vehicle]"));
    /** @type {Policy[]} */
    this.policies = [];
    this.corpus.addEventListener("change", tell.stage);
    this.seedField.addEventListener("change", tell.stage);
    byId("shuffle").addEventListener("click", () => {
      this.seed = Math.floor(Math.random() * SEEDS);
      tell.stage();
    });
    for (const radio of this.radios) {
      radio.addEventListener("change", () => {
        this.#explain();
        tell.vehicle();
      });
    }
    for (const select of [this.policy, this.rival]) {
      select.addEventListener("change", () => {
        this.#cards();
        tell.policies();
      });
    }
    this.examples.addEventListener("change", () => {
      const [world, number] = this.examples.value.split("/");
      const text = this.#sentences[world]?.[Number(number)];
      this.examples.value = "";
      if (!text) return;
      this.corpus.value = world;
      tell.example(text);
    });
    this.#explain();
  }

  /** @type {Record<string, string[]>} */
  #sentences = {};

  /** @param {Welcome} welcome */
  offer(welcome) {
    const chosen = { corpus: this.corpus.value, policies: this.chosen };
    this.policies = welcome.policies;
    this.#sentences = welcome.examples;
    const corpora = welcome.corpora.map((entry) => (typeof entry === "string" ? entry : entry.name));
    this.corpus.replaceChildren(make("option", { value: "" }, "what fits the words"));
    this.examples.replaceChildren(make("option", { value: "" }, "Examples…"));
    for (const name of corpora) {
      this.corpus.append(make("option", { value: name }, WORLDS[name] ?? name));
      const group = make("optgroup", { label: WORLDS[name] ?? name });
      (welcome.examples[name] ?? []).forEach((text, number) => {
        group.append(make("option", { value: `${name}/${number}` }, text));
      });
      if (group.children.length) this.examples.append(group);
    }
    this.corpus.value = chosen.corpus;
    const options = () => welcome.policies.map(({ name, title }) => make("option", { value: name }, title || name));
    this.policy.replaceChildren(...options());
    this.rival.replaceChildren(make("option", { value: "" }, "nobody"), ...options());
    this.rival.disabled = welcome.policies.length < 2;
    this.chosen = chosen.policies.length ? chosen.policies : [welcome.default_policy];
  }

  /**
   * Let random layouts have what the sentence names.
   * @param {string[]} worlds Kinds that have it.
   */
  allow(worlds) {
    this.named.checked = true;
    if (!worlds.includes(this.corpus.value)) this.corpus.value = ""; // what fits the words
  }

  /** The first example there is: something to begin with. */
  get first() {
    return Object.values(this.#sentences).find((sentences) => sentences.length)?.[0] ?? "";
  }

  get seed() {
    const seed = Math.floor(Number(this.seedField.value));
    return Number.isSafeInteger(seed) && seed >= 0 && seed < 2 ** 32 ? seed : 0;
  }

  set seed(seed) {
    this.seedField.value = String(seed);
  }

  /** @returns {"sim" | "lab"} */
  get vehicle() {
    return [...this.radios].some(({ value, checked }) => checked && value === "lab") ? "lab" : "sim";
  }

  set vehicle(vehicle) {
    for (const radio of this.radios) radio.checked = radio.value === vehicle;
    this.#explain();
  }

  /** Names of those who fly: one or two. */
  get chosen() {
    return [this.policy.value, this.rival.value].filter(Boolean);
  }

  set chosen(names) {
    const known = new Set(this.policies.map(({ name }) => name));
    this.policy.value = known.has(names[0]) ? names[0] : (this.policies[0]?.name ?? "");
    this.rival.value = names[1] && known.has(names[1]) ? names[1] : "";
    this.#cards();
  }

  /** @param {string} name */
  title(name) {
    return this.policies.find((policy) => policy.name === name)?.title || name;
  }

  /** @param {boolean} enabled */
  enable(enabled) {
    const controls = [this.corpus, this.seedField, this.policy, byId("shuffle"), this.examples, ...this.radios];
    for (const control of controls) control.toggleAttribute("disabled", !enabled);
    this.rival.disabled = !enabled || this.policies.length < 2;
  }

  #explain() {
    byId("vehicle-help").textContent = VEHICLES[this.vehicle];
  }

  /** Links to the model cards of those who fly; nobody flies beside itself. */
  #cards() {
    for (const option of this.rival.options) option.disabled = option.value === this.policy.value;
    if (this.rival.value === this.policy.value) this.rival.value = "";
    const cards = byId("cards");
    cards.replaceChildren();
    for (const name of new Set(this.chosen)) {
      const address = this.policies.find((policy) => policy.name === name)?.card_url ?? "";
      if (!address.startsWith("/") || address.startsWith("//")) continue;
      if (cards.childNodes.length) cards.append(" · ");
      cards.append(make("a", { href: address, target: "_blank", rel: "noopener" }, `Model card of ${name}`));
    }
    if (this.policies.length === 1) cards.append(" · Start the studio with more policies to compare them.");
  }
}
