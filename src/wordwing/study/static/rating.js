/** Items one after another, from the first to practise on to the thanks. */

import { byId } from "./dom.js";
import { remember } from "./link.js";
import { Participation, leave } from "./participation.js";
import { Player } from "./player.js";
import { Questions } from "./questions.js";
import { message, progress, show } from "./screens.js";
import { Stopwatch } from "./stopwatch.js";

/** @typedef {{key: string, fits: boolean | null, text: string}} Feedback */
/**
 * @typedef {object} Item
 * @property {string} id
 * @property {string} instruction
 * @property {boolean} practice
 * @property {number} place From 1.
 * @property {number} of
 * @property {import("./questions.js").Answers | null} answers
 */

export class Rating extends Participation {
  constructor() {
    super("Your answers are still here.");
    this.player = new Player();
    this.watch = new Stopwatch();
    /** @type {Questions | null} */
    this.questions = null;
    /** @type {Item | null} */
    this.item = null;
    /** @type {string[]} Ids of the items to rate, in order. */
    this.order = [];
    /** @type {Map<string, Partial<import("./questions.js").Answers>>} What was chosen but not saved, by item. */
    this.drafts = new Map();
    this.told = false;
    this.player.video.addEventListener("error", () => {
      if (this.item && !this.again) this.failed("The video could not be loaded.", () => this.#reload());
    });
  }

  /** @param {{questions: import("./questions.js").Question[], unclear: string}} guide */
  prepare(guide) {
    this.questions = new Questions(guide.questions, guide.unclear);
  }

  get working() {
    return Boolean(this.item);
  }

  /** Keep what was answered, or, when practice answers have been looked at, go on. */
  save() {
    const { item, questions } = this;
    if (!item || !questions) return;
    if (this.told) return this.try(() => this.#next());
    if (!questions.complete()) return;
    return this.try(async () => {
      const answers = { ...questions.answers, seconds: this.watch.seconds };
      const { feedback } = await this.server.ask(address(item.id), answers);
      if (feedback) return this.#tell(feedback);
      this.drafts.delete(item.id);
      const following = this.order[item.place];
      await (following ? this.#open(following) : this.#next());
    });
  }

  /** To the item before this one, or from the end to the last. */
  back() {
    const { item, questions } = this;
    if (item && questions) this.drafts.set(item.id, questions.answers);
    const id = item ? this.order[item.place - 2] : this.order.at(-1);
    return id ? this.try(() => this.#open(id)) : undefined;
  }

  finish() {
    return this.try(async () => {
      await this.server.ask("/rater/finish", {});
      thanks();
    });
  }

  async resume() {
    const { progress: done, order } = await this.server.ask("/rater");
    this.order = order.map((/** @type {{id: string}} */ { id }) => id);
    if (done.finished) return thanks();
    remember(this.server.token);
    await this.#next();
  }

  async #next() {
    const { item } = await this.server.ask("/rater/next");
    if (item) this.#show(item);
    else await this.#review();
  }

  /** @param {string} id */
  async #open(id) {
    this.#show((await this.server.ask(address(id))).item);
  }

  /** @param {Item} item */
  #show(item) {
    this.item = item;
    this.told = false;
    const { practice, place, of, answers } = item;
    byId("instruction").textContent = item.instruction;
    byId("practice-note").hidden = !practice;
    byId("back").hidden = practice || place === 1;
    byId("save").textContent = practice ? "Check my answers" : "Save and next";
    byId("checked").textContent = "";
    byId("later").hidden = false;
    this.questions?.show(this.drafts.get(item.id) ?? answers);
    this.player.show(item.id);
    this.watch.start(answers?.seconds ?? 0);
    const title = `${practice ? "Practice" : "Flight"} ${place} of ${of}`;
    progress(title, (place - 1) / of);
    show("item", title);
  }

  /** @param {Feedback[]} feedback */
  #tell(feedback) {
    const { item } = this;
    if (!item) return;
    this.told = true;
    this.questions?.tell(feedback);
    const fitting = feedback.filter(({ fits }) => fits).length;
    const judged = feedback.filter(({ fits }) => fits !== null).length;
    byId("checked").textContent = judged ? `Answers that fit: ${fitting} of ${judged}.` : "Here any answer fits.";
    byId("save").textContent = item.place === item.of ? "Begin to rate" : "Next practice flight";
    byId("save").focus();
  }

  async #review() {
    const { progress: done } = await this.server.ask("/rater");
    this.item = null;
    this.player.clear();
    const none = done.items === 0;
    byId("review-text").textContent = none
      ? "You were away so long that others have been given your flights. Thank you for coming."
      : "You can still go back and change answers. When you have finished, nothing can be changed any more.";
    byId("review-back").hidden = none;
    byId("later").hidden = none;
    const all = done.items === 1 ? "The flight is rated" : `All ${done.items} flights are rated`;
    const title = none ? "There is nothing left to rate" : all;
    progress(none ? "" : title, 1);
    show("review", title);
  }

  #reload() {
    this.clearNotice();
    this.player.again();
  }

  /** @param {import("./server.js").RefusedError} error */
  refused(error) {
    if (error.state === "finished") {
      thanks();
    } else if (error.state === "full") {
      message("There are enough raters", "This study needs no more raters. Thank you for coming.");
    } else if (error.status === 404 && this.item) {
      // The item has been given to somebody else; what is left to do is asked for anew.
      this.item = null;
      setTimeout(() => this.try(() => this.resume()));
    } else {
      return false;
    }
    return true;
  }
}

/** @param {string} id Of an item. */
const address = (id) => `/rater/items/${encodeURIComponent(id)}`;

function thanks() {
  leave("Thank you", "You have finished, and your answers are kept. You can close this page.");
}
