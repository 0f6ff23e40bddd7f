/** What the page asks its server for. The rater's secret goes in a header, never in an address. */

/** @typedef {import("./questions.js").Answers} Answers */
/** @typedef {{key: string, fits: boolean | null, text: string}} Feedback */
/** @typedef {{practised: number, practice: number, rated: number, items: number, finished: boolean}} Progress */
/** @typedef {{key: string, text: string, answers: string[]}} Question */
/**
 * @typedef {object} Guide What everybody is told.
 * @property {string} introduction
 * @property {string} task
 * @property {string[]} guidelines
 * @property {Question[]} questions
 * @property {string} unclear
 * @property {boolean} invited Whether only those may begin who bring the invitation.
 */
/**
 * @typedef {object} Item
 * @property {string} id
 * @property {string} instruction
 * @property {boolean} practice
 * @property {number} place From 1.
 * @property {number} of
 * @property {Answers | null} answers
 */

const PATIENCE = 20_000;

/** Nothing was answered, or that it cannot be answered now: asking again may help. */
export class LostError extends Error {
  /**
   * @param {string} message
   * @param {boolean} busy Whether the server has said that it has done nothing and should be asked again.
   */
  constructor(message, busy = false) {
    super(message);
    this.busy = busy;
  }
}

/** The server does not want this. */
export class RefusedError extends Error {
  /**
   * @param {number} status
   * @param {{state?: string, message?: string}} content
   */
  constructor(status, { state = "", message = "" }) {
    super(message);
    this.status = status;
    this.state = state;
  }
}

export class Server {
  /** @param {string} token The rater's secret; empty before there is one. */
  constructor(token = "") {
    this.token = token;
  }

  /** @returns {Promise<Guide>} */
  guide() {
    return this.#ask("/guide");
  }

  /**
   * Become a rater.
   * @param {string} invitation
   */
  async begin(invitation) {
    const { rater } = await this.#ask("/raters", { invitation });
    this.token = rater;
  }

  /** @returns {Promise<{progress: Progress, order: {id: string, rated: boolean}[]}>} */
  rater() {
    return this.#ask("/rater");
  }

  /** @returns {Promise<Item | null>} What is to be done next. */
  async next() {
    return (await this.#ask("/rater/next")).item;
  }

  /**
   * @param {string} id
   * @returns {Promise<Item>}
   */
  async item(id) {
    return (await this.#ask(`/rater/items/${encodeURIComponent(id)}`)).item;
  }

  /**
   * @param {string} id
   * @param {Answers} answers
   * @returns {Promise<{feedback: Feedback[] | null, progress: Progress}>}
   */
  answer(id, answers) {
    return this.#ask(`/rater/items/${encodeURIComponent(id)}`, answers);
  }

  /** @returns {Promise<{progress: Progress}>} */
  finish() {
    return this.#ask("/rater/finish", {});
  }

  /**
   * @param {string} path
   * @param {object} [content] What is sent; nothing is only asked for.
   * @returns {Promise<any>}
   */
  async #ask(path, content) {
    /** @type {Record<string, string>} */
    const headers = this.token ? { Authorization: `Bearer ${this.token}` } : {};
    if (content) headers["Content-Type"] = "application/json";
    let answer;
    let said;
    try {
      answer = await fetch(path, {
        method: content ? "POST" : "GET",
        headers,
        body: content && JSON.stringify(content),
        signal: AbortSignal.timeout(PATIENCE),
      });
      said = answer.status < 500 && answer.status !== 429 ? await answer.json() : {};
    } catch {
      throw new LostError("The connection to the study is lost.");
    }
    if (answer.ok) return said;
    if (answer.status === 429 || answer.status >= 500) throw new LostError("The study is busy just now.", true);
    throw new RefusedError(answer.status, said);
  }
}
