/** What has been flown since the drones were placed: every decision of every lane, to be seen again. */

/** @typedef {import("./socket.js").Frame} Frame */
/** @typedef {import("./link.js").Shared} Shared */
/** @typedef {Omit<Shared, "policies" | "texts">} Place */

/**
 * @typedef {object} Kept
 * @property {Frame} frame
 * @property {number} leg Which instruction.
 * @property {number} tick When, counted in control periods since the first take-off.
 */

/** @typedef {{leg: number, lane: number, reason: string, seconds: number, metres: number, verdict: string,
 *   followed: boolean | null, clauses: {words: string, done: boolean}[]}} Ending */

/** Seconds between two decisions. */
export const PERIOD = 0.3;

export class Recording {
  /** @param {Place} place Where this is flown. */
  constructor(place) {
    this.place = place;
    /** @type {string[]} */
    this.policies = [];
    /** @type {string[]} Instructions, one after another. */
    this.texts = [];
    /** @type {number[]} Tick at which each of them begins. */
    this.begins = [];
    /** @type {Kept[][]} By lane. */
    this.lanes = [];
    /** @type {Ending[]} */
    this.endings = [];
  }

  /** How many ticks there are; those of lanes that have stopped earlier are waited for. */
  get ticks() {
    return Math.max(0, ...this.lanes.map((lane) => (lane.length ? lane[lane.length - 1].tick + 1 : 0)));
  }

  get empty() {
    return this.ticks === 0;
  }

  /** Whether all lanes have ended the last instruction. */
  get ended() {
    const last = this.endings.filter((ending) => ending.leg === this.texts.length - 1);
    return this.texts.length > 0 && last.length >= this.policies.length;
  }

  /** Whether somebody stopped a drone by hand, which a link cannot repeat. */
  get byHand() {
    return this.endings.some((ending) => ending.reason === "stopped");
  }

  /** Everything that decides these flights. @returns {Shared} */
  get shared() {
    const { layout, start, seed, vehicle } = this.place;
    return { layout, start, seed, vehicle, policies: this.policies, texts: this.texts };
  }

  /**
   * An instruction begins.
   * @param {string} text
   * @param {string[]} policies
   */
  begin(text, policies) {
    if (!this.texts.length) this.lanes = policies.map(() => []);
    this.policies = policies;
    this.begins.push(this.ticks);
    this.texts.push(text);
  }

  /** The last instruction did not begin after all. */
  withdraw() {
    this.texts.pop();
    this.begins.pop();
  }

  /** @param {Frame} frame */
  add(frame) {
    const lane = this.lanes[frame.lane];
    const leg = this.texts.length - 1;
    if (!lane || leg < 0) return;
    const last = lane[lane.length - 1];
    const tick = last?.leg === leg ? last.tick + 1 : this.begins[leg];
    lane.push({ frame, leg, tick });
  }

  /**
   * Everything of a lane up to a tick.
   * @param {number} lane
   * @param {number} tick
   * @returns {Kept[]}
   */
  until(lane, tick) {
    const kept = this.lanes[lane] ?? [];
    let [low, high] = [0, kept.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (kept[middle].tick <= tick) low = middle + 1;
      else high = middle;
    }
    return kept.slice(0, low);
  }

  /**
   * How a lane ended an instruction.
   * @param {number} lane
   * @param {number} leg
   */
  ending(lane, leg) {
    return this.endings.find((ending) => ending.lane === lane && ending.leg === leg);
  }

  /** The episode as a file: all numbers, no images. */
  toJSON() {
    return {
      schema: 1,
      kind: "wordwing studio episode",
      units: "metres, radians, seconds; world frame, x up and y left in the view from above",
      control_period: PERIOD,
      ...this.shared,
      lanes: this.policies.map((policy, lane) => ({
        policy,
        endings: this.endings
          .filter((ending) => ending.lane === lane)
          .map(({ leg, reason, seconds, metres, verdict, followed, clauses }) => ({
            instruction: leg, reason, seconds, metres, verdict, followed, clauses,
          })),
        states: this.lanes[lane].map(({ frame, leg, tick }) => ({
          instruction: leg,
          step: frame.step,
          time: Math.round(1000 * tick * PERIOD) / 1000,
          pose: frame.pose,
          setpoint: frame.setpoint,
          stop: frame.stop,
          stopped: frame.stopped,
          settling: frame.settling,
          unobserved: frame.unobserved,
          goal: frame.goal,
        })),
      })),
    };
  }
}
