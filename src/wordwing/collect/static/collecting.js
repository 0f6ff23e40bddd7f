/** Somebody's tasks one after another: write about a path, look at it again, send it; follow what others wrote. */

import { byId, make } from "./dom.js";
import { remember } from "./link.js";
import { FieldMap, Sketch } from "./map.js";
import { Participation } from "./participation.js";
import { Player } from "./player.js";
import { show } from "./screens.js";

/**
 * @typedef {object} Part
 * @property {number} place
 * @property {number[]} start x, y, yaw.
 * @property {string} media
 * @property {number[][]} poses
 * @property {string} sentence
 * @property {boolean} yours
 * @property {string[]} remarks
 */
/**
 * @typedef {object} Work
 * @property {string} id
 * @property {"write" | "follow"} role
 * @property {boolean} practice
 * @property {string} map
 * @property {Part[]} parts
 * @property {number} of
 */
/** @typedef {{practised: number, practice: number, written: number, accepted: number, followed: number}} Progress */

/** Milliseconds until the page looks again whether there is something to do. */
const PATIENCE = 10_000;

export class Collecting extends Participation {
  constructor() {
    super("What you have done is still here.");
    this.player = new Player();
    this.text = /** @type {HTMLTextAreaElement} */ (byId("sentence"));
    this.writeMap = new FieldMap(/** @type {HTMLImageElement} */ (byId("write-map")));
    this.followMap = new FieldMap(/** @type {HTMLImageElement} */ (byId("follow-map")));
    this.sketch = new Sketch(this.followMap, (words) => (byId("sketch-said").textContent = words));
    this.rate = 1;
    /** @type {Work | null} */
    this.work = null;
    /** @type {Part | null} The one that is being written about, or followed. */
    this.part = null;
    /** @type {Map<string, string>} What was typed but not saved, by media. */
    this.drafts = new Map();
    this.told = false;
    byId("undo").addEventListener("click", () => this.sketch.undo());
    byId("clear").addEventListener("click", () => this.sketch.clear());
    this.text.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.save();
    });
    for (const event of ["play", "seeked", "timeupdate", "loadedmetadata"]) {
      this.player.video.addEventListener(event, () => this.#move());
    }
    this.player.video.addEventListener("error", () => {
      if (this.part?.poses.length && !this.again) this.failed("The video could not be loaded.", () => this.#reload());
    });
  }

  /** @param {{max_sentence: number, max_points: number, rate: number}} guide */
  prepare(guide) {
    this.text.maxLength = guide.max_sentence;
    this.sketch.most = guide.max_points;
    this.rate = guide.rate;
  }

  get working() {
    return Boolean(this.work);
  }

  async resume() {
    remember(this.server.token);
    byId("later").hidden = false;
    /** @type {{work: Work | null, progress: Progress}} */
    const { work, progress } = await this.server.ask("/participant/next", {});
    this.work = work;
    this.part = null;
    this.told = false;
    if (!work) this.#idle();
    else if (work.role === "follow") this.#follow(work);
    else this.#write(work, this.#own.find(({ sentence }) => !sentence));
    byId("status").textContent = `${progress.written} written, ${progress.accepted} accepted, ${progress.followed} followed`;
  }

  look() {
    return this.try(() => this.resume());
  }

  /** Keep the sentence, and go on to the next part or to the review. */
  save() {
    const { work, part } = this;
    if (!work || !part) return;
    const text = this.text.value.trim();
    this.#say(text ? "" : "Write what you would say to the drone.");
    if (!text) return this.text.focus();
    return this.try(async () => {
      const answer = await this.server.ask(`${address(work)}/sentences/${part.place}`, { sentence: this.text.value });
      Object.assign(part, answer);
      this.drafts.delete(part.media);
      const own = this.#own;
      this.#write(work, own[own.indexOf(part) + 1]);
    });
  }

  /** To the part before this one. */
  back() {
    const { work, part } = this;
    if (!work || !part) return;
    this.drafts.set(part.media, this.text.value);
    const own = this.#own;
    this.#write(work, own[own.indexOf(part) - 1]);
  }

  /** Send all sentences of a path, or go on after practice. */
  send() {
    const { work } = this;
    if (!work || this.told) return this.look();
    return this.try(async () => {
      const { feedback } = await this.server.ask(`${address(work)}/send`, {});
      if (!feedback) return this.resume();
      this.told = true;
      byId("review-told").textContent = feedback.text;
      for (const button of byId("review-list").querySelectorAll("button")) button.disabled = true;
      byId("send").textContent = "Go on";
      byId("send").focus();
    });
  }

  /** Send where the sentence leads, or go on after practice. */
  lead() {
    const { work, part } = this;
    if (!work || !part || this.told) return this.look();
    const path = this.sketch.points;
    byId("follow-told").textContent = path.length < 2 ? "Draw a line on the map first." : "";
    if (path.length < 2) return this.followMap.svg.focus();
    return this.try(async () => {
      const { feedback } = await this.server.ask(`${address(work)}/lines/${part.place}`, { path });
      if (!feedback) return this.resume();
      this.told = true;
      this.sketch.lock(feedback.path);
      byId("follow-told").textContent = feedback.text;
      for (const id of ["undo", "clear"]) /** @type {HTMLButtonElement} */ (byId(id)).disabled = true;
      byId("lead").textContent = "Go on";
      byId("lead").focus();
    });
  }

  /** @param {import("./server.js").RefusedError} error */
  refused(error) {
    if (error.status !== 404 || !this.work) return false;
    // The task has been given to somebody else; what is left to do is asked for anew.
    this.work = null;
    setTimeout(() => this.look());
    return true;
  }

  get #own() {
    return (this.work?.parts ?? []).filter(({ yours }) => yours);
  }

  /**
   * @param {Work} work
   * @param {Part | undefined} part None is left: the review.
   */
  #write(work, part) {
    if (!part) return this.#review(work);
    const own = this.#own;
    this.part = part;
    byId("write-help").textContent = work.practice
      ? "Afterwards you are told what others wrote. This sentence is not used."
      : "Watch this part, and write what makes the drone fly it. It has already flown the parts before.";
    byId("sentence-label").textContent = `What do you tell the drone for part ${part.place + 1}?`;
    this.text.value = this.drafts.get(part.media) ?? part.sentence;
    this.#say(part.remarks.join(" "));
    writeBefore("write-before", work.parts.slice(0, part.place));
    byId("back").hidden = part === own[0];
    this.writeMap.show(work.map);
    this.writeMap.drone(part.start);
    this.player.show(part.media, work.map);
    const title = work.practice ? "Practice: write" : `Write: part ${part.place + 1} of ${work.parts.length}`;
    show("write", title);
  }

  /** @param {Work} work */
  #review(work) {
    this.part = null;
    this.player.clear();
    const rows = work.parts.map((part) => {
      const change = make("button", { type: "button", "aria-label": `Change part ${part.place + 1}` }, "Change");
      change.addEventListener("click", () => this.#write(work, part));
      const words = make("span", {}, part.sentence || "(nobody has written this part yet)");
      const remarks = part.remarks.map((remark) => make("span", { class: "said" }, remark));
      return make("li", { value: String(part.place + 1) }, words, ...(part.yours ? [change] : []), ...remarks);
    });
    byId("review-list").replaceChildren(...rows);
    byId("review-told").textContent = "";
    byId("send").textContent = work.practice ? "Check" : "Send";
    show("review", "Is this what you want to say?");
  }

  /** @param {Work} work */
  #follow(work) {
    const part = /** @type {Part} */ (work.parts.at(-1));
    this.part = part;
    this.player.clear();
    writeBefore("follow-before", work.parts.slice(0, -1));
    byId("order").textContent = part.sentence;
    this.followMap.show(work.map);
    this.sketch.begin(part.start);
    /** @type {HTMLImageElement} */ (byId("view")).src = `/media/${encodeURIComponent(part.media)}/view`;
    /** @type {HTMLImageElement} */ (byId("follow-legend")).src = `/media/${encodeURIComponent(work.map)}/legend`;
    for (const id of ["undo", "clear"]) /** @type {HTMLButtonElement} */ (byId(id)).disabled = false;
    byId("follow-told").textContent = "";
    byId("lead").textContent = work.practice ? "Check" : "Send";
    show("follow", work.practice ? "Practice: follow" : "Follow");
  }

  #idle() {
    this.player.clear();
    show("idle", "There is nothing for you just now");
    setTimeout(() => !byId("idle").hidden && !this.again && this.look(), PATIENCE);
  }

  /** The drone on the map is where it is in the video. */
  #move() {
    const { video } = this.player;
    const poses = this.part?.poses ?? [];
    if (!poses.length) return;
    this.writeMap.drone(poses[Math.min(poses.length - 1, Math.floor(video.currentTime * this.rate))]);
    if (!video.paused) requestAnimationFrame(() => this.#move());
  }

  #reload() {
    this.clearNotice();
    this.player.again();
  }

  /** @param {string} words */
  #say(words) {
    byId("sentence-said").textContent = words;
  }
}

/** @param {Work} work */
const address = (work) => `/participant/work/${encodeURIComponent(work.id)}`;

/**
 * What has been said before.
 * @param {string} id Of a list.
 * @param {Part[]} parts
 */
function writeBefore(id, parts) {
  const said = parts.filter(({ sentence }) => sentence);
  byId(id).replaceChildren(...said.map(({ place, sentence }) => make("li", { value: String(place + 1) }, sentence)));
  byId(id).hidden = said.length === 0;
}
