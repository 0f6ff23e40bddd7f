/** From the welcome to the thanks. */

import { LostError, RefusedError, Server } from "./api.js";
import { byId, sentence } from "./dom.js";
import { held, moveTo, remember, remembered } from "./link.js";
import { Questions } from "./questions.js";
import { message, notice, progress, show, writeGuide } from "./screens.js";
import { Stage } from "./stage.js";
import { Stopwatch } from "./stopwatch.js";

/** @typedef {import("./api.js").Item} Item */

const KEPT = "Your answers are still here.";

/** Milliseconds until a busy server is asked again. */
const WAIT = 5_000;

export class Rating {
  constructor() {
    this.server = new Server(held("rater"));
    this.stage = new Stage();
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
    this.busy = false;
    /** @type {(() => void) | null} */
    this.again = null;
    addEventListener("online", () => this.again?.());
    this.stage.video.addEventListener("error", () => {
      if (this.item && !this.again) this.#failed("The video could not be loaded.", () => this.#reload());
    });
  }

  /** Find out who has come. */
  open() {
    return this.#try(async () => {
      const guide = await this.server.guide();
      writeGuide(guide);
      this.questions = new Questions(guide.questions, guide.unclear);
      if (this.server.token) return this.#resume();
      if (guide.invited && !held("invitation")) return unknown();
      const known = Boolean(remembered());
      byId("again").hidden = byId("again-help").hidden = !known;
      show("welcome", guide.introduction);
    });
  }

  begin() {
    return this.#try(async () => {
      await this.server.begin(held("invitation"));
      moveTo(this.server.token);
      await this.#resume();
    });
  }

  /** Go on as who has begun in this browser before. */
  goOn() {
    this.server.token = remembered();
    moveTo(this.server.token);
    return this.#try(() => this.#resume());
  }

  /** Keep what was answered, or, when practice answers have been looked at, go on. */
  save() {
    const { item, questions } = this;
    if (!item || !questions) return;
    if (this.told) return this.#try(() => this.#next());
    if (!questions.complete()) return;
    return this.#try(async () => {
      const answers = { ...questions.answers, seconds: this.watch.seconds };
      const { feedback } = await this.server.answer(item.id, answers);
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
    return id ? this.#try(() => this.#open(id)) : undefined;
  }

  finish() {
    return this.#try(async () => {
      await this.server.finish();
      thanks();
    });
  }

  async #resume() {
    const { progress: done, order } = await this.server.rater();
    this.order = order.map(({ id }) => id);
    if (done.finished) return thanks();
    remember(this.server.token);
    await this.#next();
  }

  async #next() {
    const item = await this.server.next();
    if (item) this.#show(item);
    else await this.#review();
  }

  /** @param {string} id */
  async #open(id) {
    this.#show(await this.server.item(id));
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
    this.stage.show(item.id);
    this.watch.start(answers?.seconds ?? 0);
    const title = `${practice ? "Practice" : "Flight"} ${place} of ${of}`;
    progress(title, (place - 1) / of);
    show("item", title);
  }

  /** @param {import("./api.js").Feedback[]} feedback */
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
    const { progress: done } = await this.server.rater();
    this.item = null;
    this.stage.clear();
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
    this.#clearNotice();
    this.stage.again();
  }

  #clearNotice() {
    this.again = null;
    notice("");
  }

  /**
   * @param {string} text
   * @param {() => void} again
   */
  #failed(text, again) {
    this.again = again;
    notice(text, again);
  }

  /**
   * Do something with the server, one thing at a time; if it cannot be reached, offer to try again.
   * @param {() => Promise<void> | void} work
   */
  async #try(work) {
    if (this.busy) return;
    this.busy = true;
    document.body.setAttribute("aria-busy", "true");
    try {
      await work();
      this.#clearNotice();
    } catch (error) {
      this.#explain(error, work);
    } finally {
      this.busy = false;
      document.body.removeAttribute("aria-busy");
    }
  }

  /**
   * @param {unknown} error
   * @param {() => Promise<void> | void} work
   */
  #explain(error, work) {
    if (error instanceof LostError) {
      const again = () => this.#try(work);
      this.#failed(this.item ? `${error.message} ${KEPT}` : error.message, again);
      if (error.busy) setTimeout(() => this.again === again && again(), WAIT);
    } else if (!(error instanceof RefusedError)) {
      throw error;
    } else if (error.state === "finished") {
      thanks();
    } else if (error.state === "full") {
      message("There are enough raters", "This study needs no more raters. Thank you for coming.");
    } else if (error.status === 404 && this.item) {
      // The item has been given to somebody else; what is left to do is asked for anew.
      this.item = null;
      setTimeout(() => this.#try(() => this.#resume()));
    } else if (error.status === 404) {
      unknown();
    } else {
      this.#failed(sentence(error.message), () => this.#try(work));
    }
  }
}

function unknown() {
  remember("");
  leave();
  message("This link is not known", "Please open the link that you were given, all of it, up to its last letter.");
}

function thanks() {
  remember("");
  leave();
  message("Thank you", "You have finished, and your answers are kept. You can close this page.");
}

function leave() {
  byId("later").hidden = true;
  progress("");
}
