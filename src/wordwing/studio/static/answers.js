/** What the server has been asked and has not answered yet; it answers in order. */

export class Answers {
  /** Whether a flight was asked for. */
  asking = false;
  #resets = 0;
  /** Flights that were asked for and reset before they were answered. */
  #dropped = 0;

  /** Whether a reset is not answered yet; until then the server speaks of flights that are over. */
  get resetting() {
    return this.#resets > 0;
  }

  /** @param {boolean} sent Whether a reset could be sent: nothing before it matters any more. */
  reset(sent) {
    if (sent) this.#resets += 1;
    if (sent && this.asking) this.#dropped += 1;
    this.asking = false;
  }

  /**
   * The server says what a drone does.
   * @param {string} phase
   * @returns {boolean} Whether it is about a flight that somebody waits for.
   */
  state(phase) {
    if (!this.resetting) {
      this.asking = false;
      return true;
    }
    if (phase === "idle") this.#resets -= 1;
    if (!this.resetting) this.#dropped = 0;
    return false;
  }

  /**
   * The server refuses something.
   * @returns {boolean} Whether somebody waits for it; nobody does for a flight that was reset.
   */
  refused() {
    if (!this.#dropped) return true;
    this.#dropped -= 1;
    return false;
  }

  /** The server is gone, and its answers with it. */
  forget() {
    [this.asking, this.#resets, this.#dropped] = [false, 0, 0];
  }
}
