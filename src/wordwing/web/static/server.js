/** What a page asks its server for. The participant's secret goes in a header, never in an address. */

import { what, who } from "./link.js";

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
  /** @param {string} token The participant's secret; empty before there is one. */
  constructor(token = "") {
    this.token = token;
  }

  /** What everybody is told; `invited` is whether only those may begin who bring the invitation. */
  guide() {
    return this.ask("/guide");
  }

  /**
   * Become a participant.
   * @param {string} invitation
   */
  async begin(invitation) {
    this.token = (await this.ask(`/${who}s`, { invitation }))[who];
  }

  /**
   * @param {string} path
   * @param {object} [content] What is sent; nothing is only asked for.
   * @returns {Promise<any>}
   */
  async ask(path, content) {
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
      throw new LostError(`The connection to the ${what} is lost.`);
    }
    if (answer.ok) return said;
    if (answer.status === 429 || answer.status >= 500) throw new LostError(`The ${what} is busy just now.`, true);
    throw new RefusedError(answer.status, said);
  }
}
