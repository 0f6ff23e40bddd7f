/** From the welcome to the last screen: what all pages share on which people take part by a link of their own. */

import { byId, sentence } from "./dom.js";
import { held, initCopy, moveTo, remember, remembered, who } from "./link.js";
import { message, notice, progress, show, writeGuide } from "./screens.js";
import { LostError, RefusedError, Server } from "./server.js";

/** Milliseconds until a busy server is asked again. */
const WAIT = 5_000;

/** A page overrides what is its own: `prepare`, `resume` and `refused`. */
export class Participation {
  /** @param {string} kept What is said when the connection is lost while there is something to lose. */
  constructor(kept) {
    this.kept = kept;
    this.server = new Server(held(who));
    this.busy = false;
    /** @type {(() => void) | null} */
    this.again = null;
    initCopy();
    byId("begin").addEventListener("click", () => this.begin());
    byId("again").addEventListener("click", () => this.goOn());
    addEventListener("online", () => this.again?.());
    addEventListener("hashchange", () => location.reload());
  }

  /**
   * Make use of what the server says to everybody.
   * @param {any} _guide
   */
  prepare(_guide) {}

  /** Show what the participant is at. */
  async resume() {}

  /** Whether there is something on the page that would be lost with it. */
  get working() {
    return false;
  }

  /**
   * Whether the page has dealt with what the server has refused.
   * @param {RefusedError} _error
   */
  refused(_error) {
    return false;
  }

  /** Find out who has come. */
  open() {
    return this.try(async () => {
      const guide = await this.server.guide();
      writeGuide(guide);
      this.prepare(guide);
      if (this.server.token) return this.resume();
      if (guide.invited && !held("invitation")) return unknown();
      const known = Boolean(remembered());
      byId("again").hidden = byId("again-help").hidden = !known;
      show("welcome", guide.introduction);
    });
  }

  begin() {
    return this.try(async () => {
      await this.server.begin(held("invitation"));
      moveTo(this.server.token);
      await this.resume();
    });
  }

  /** Go on as who has begun in this browser before. */
  goOn() {
    this.server.token = remembered();
    moveTo(this.server.token);
    return this.try(() => this.resume());
  }

  clearNotice() {
    this.again = null;
    notice("");
  }

  /**
   * @param {string} text
   * @param {() => void} again
   */
  failed(text, again) {
    this.again = again;
    notice(text, again);
  }

  /**
   * Do something with the server, one thing at a time; if it cannot be reached, offer to try again.
   * @param {() => Promise<void> | void} work
   */
  async try(work) {
    if (this.busy) return;
    this.busy = true;
    document.body.setAttribute("aria-busy", "true");
    try {
      await work();
      this.clearNotice();
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
      const again = () => this.try(work);
      this.failed(this.working ? `${error.message} ${this.kept}` : error.message, again);
      if (error.busy) setTimeout(() => this.again === again && again(), WAIT);
    } else if (!(error instanceof RefusedError)) {
      throw error;
    } else if (!this.refused(error)) {
      if (error.status === 404) unknown();
      else this.failed(sentence(error.message), () => this.try(work));
    }
  }
}

/** The last words to somebody. @param {string} title @param {string} text */
export function leave(title, text) {
  remember("");
  byId("later").hidden = true;
  progress("");
  message(title, text);
}

function unknown() {
  leave("This link is not known", "Please open the link that you were given, all of it, up to its last letter.");
}
