/** What happens when: the studio's connection, its flights, and everything on the page that follows them. */

import { Answers } from "./answers.js";
import { Desk } from "./desk.js";
import { byId, sentence } from "./dom.js";
import { readFile, writeLayout } from "./files.js";
import { endingWords } from "./lane.js";
import { Lanes } from "./lanes.js";
import { fromLink } from "./link.js";
import { Placing } from "./placing.js";
import { Playback } from "./playback.js";
import { Recording } from "./recording.js";
import { Settings } from "./settings.js";
import { Connection } from "./socket.js";
import { Takeaway } from "./takeaway.js";
import { TextBox } from "./text.js";
import { Things } from "./things.js";

/** @typedef {import("./desk.js").Phase} Phase */
/** @typedef {import("./link.js").Shared} Shared */

export class Studio {
  /** @type {Phase} */
  phase = "connecting";
  /** @type {Recording | null} */
  recording = null;
  grid = { cells: 64, size: 9.4 };
  answers = new Answers();
  /** Whether to fly as soon as everything is placed. */
  impatient = false;
  /** @type {Shared | null} A link that is to be flown. */
  link = null;
  trouble = "";
  /** What the server said last, if it was a refusal: where the connection ends after it, that is why. */
  refusal = "";
  /** @type {string[]} Instructions of a link that are still to come. */
  queue = [];

  constructor() {
    this.connection = new Connection();
    this.desk = new Desk();
    this.placing = new Placing((message) => this.connection.send(message));
    this.text = new TextBox(
      (question) => this.connection.send({ type: "words", ...question }),
      () => this.settings.chosen.map((name) => ({ name, title: this.settings.title(name) })),
      (worlds) => {
        this.settings.allow(worlds);
        this.stage();
      },
    );
    this.playback = new Playback(() => this.draw());
    this.things = new Things({
      redraw: () => this.draw(),
      commit: (place) => this.place(place),
      edited: () => this.#discard(),
    });
    this.lanes = new Lanes(this.things, (tick) => {
      this.playback.pause();
      this.playback.seek(tick);
    });
    this.takeaway = new Takeaway(() => this.connection.send({ type: "keep" }));
    this.settings = new Settings({
      stage: () => this.stage(),
      vehicle: () => {
        this.things.flush();
        if (this.things.place) this.place({ ...this.things.place, vehicle: this.settings.vehicle });
      },
      policies: () => this.#policies(),
      example: (text) => {
        this.text.value = text;
        this.stage();
      },
    });
    this.connection.addEventListener("message", (event) => this.#hear(/** @type {CustomEvent} */ (event).detail));
    this.connection.addEventListener("frame", (event) => this.#see(/** @type {CustomEvent} */ (event).detail));
    this.connection.addEventListener("lost", () => this.#lost());
    document.addEventListener("themechange", () => this.draw());
  }

  /** Connect, with the link in the address if there is one. */
  async open() {
    await this.openLink();
    this.connect();
  }

  connect() {
    this.refusal = "";
    this.desk.notice("");
    this.#turn("connecting", "Connecting…");
    this.connection.connect();
  }

  /** Read the address's fragment, and fly what is in it. */
  async openLink() {
    try {
      this.link = await fromLink(location.hash);
    } catch (error) {
      this.trouble = String(/** @type {Error} */ (error).message);
    }
    if (this.link && (this.phase === "flying" || this.phase === "paused")) this.press("reset");
    if (!this.#ready) return;
    if (this.link) this.#follow();
    else this.#admit();
  }

  /** Say what is wrong with a link, when there is a world to go on with. */
  #admit() {
    if (this.trouble) this.desk.notice(this.trouble);
    this.trouble = "";
  }

  get #ready() {
    return this.phase === "idle" || this.phase === "ended";
  }

  /** A new random layout, with what the sentence names. */
  stage() {
    if (!this.#ready) return;
    const text = this.settings.named.checked ? this.text.value : "";
    this.link = null; // the visitor wants something else
    this.desk.notice("");
    this.things.flush(); // or a change that waits would come after the new layout
    this.placing.stage(text, this.settings.corpus.value || null, this.settings.seed);
  }

  /** @param {import("./recording.js").Place} place */
  place(place) {
    this.link = null;
    this.desk.notice("");
    this.placing.place(place);
  }

  /**
   * Fly what stands in the box.
   * @param {boolean} goesOn From where the drones are.
   */
  fly(goesOn) {
    const text = this.text.value;
    if (!text) {
      this.desk.say("Type a sentence first.");
      this.text.area.focus();
      return;
    }
    if (!this.#ready || !this.things.place) return;
    this.things.flush();
    if (this.placing.pending) {
      this.impatient = true;
      return;
    }
    if (!goesOn || !this.recording) this.recording = new Recording(this.things.place);
    const policies = goesOn ? this.recording.policies : this.settings.chosen;
    this.recording.begin(text, policies);
    if (!goesOn) this.playback.set(this.recording);
    this.playback.follows = true;
    this.playback.pause();
    this.answers.asking = true;
    this.desk.notice("");
    this.connection.send({ type: "fly", text, policies, continue: goesOn });
    this.#turn("flying", "Flying…");
  }

  /** @param {"pause" | "step" | "stop" | "reset"} key */
  press(key) {
    if (key === "reset") this.#discard();
    else if (key === "pause") this.connection.send({ type: this.phase === "paused" ? "resume" : "pause" });
    else this.connection.send({ type: key });
  }

  /** @param {number} value */
  speed(value) {
    this.playback.speed = value;
    this.connection.send({ type: "speed", value });
  }

  /** @param {File} file A layout of the visitor's own, or an episode, which is flown again. */
  async openFile(file) {
    try {
      const { layout, shared } = await readFile(file);
      if (!this.#ready) return;
      if (shared) {
        this.link = shared;
        this.#follow();
        return;
      }
      const start = this.things.place?.start ?? { x: 0, y: 0, yaw: 0 };
      this.things.flush();
      this.place({ layout, start, seed: this.settings.seed, vehicle: this.settings.vehicle });
    } catch (error) {
      this.desk.notice(/** @type {Error} */ (error).message);
    }
  }

  saveLayout() {
    if (this.things.place) writeLayout(this.things.place.layout);
  }

  /** Show the moment that the slider is at. */
  draw() {
    const { place } = this.things;
    if (!place) return;
    this.lanes.draw(this.recording, this.playback.tick, {
      ground: this.placing.ground,
      extent: this.placing.extent,
      grid: this.grid,
      landmarks: place.layout.landmarks,
      start: place.start,
      chosen: this.things.chosen,
      editable: this.things.enabled,
      radius: (name) => this.things.radius(name),
      layers: this.desk.layers,
    });
  }

  /** @param {any} message Of the server. */
  #hear(message) {
    const refused = message.type === "busy" || message.type === "error";
    this.refusal = refused ? sentence(message.message) : "";
    if (refused && !this.answers.refused()) return undefined;
    switch (message.type) {
      case "welcome": return this.#welcome(message);
      case "placed": return this.#placed(message);
      case "state": return this.#state(message.phase);
      case "ended": return this.#ended(message);
      case "words": return this.text.answer(message);
      case "kept": return this.takeaway.kept(message.id);
      case "busy": return this.#busy();
      case "error": {
        if (this.answers.asking) this.#withdraw();
        else if (this.placing.pending) this.#refused();
        return this.desk.notice(this.refusal);
      }
      default: return undefined; // of a later version
    }
  }

  /** @param {import("./settings.js").Welcome & {grid?: {cells: number, size: number}}} welcome */
  #welcome(welcome) {
    this.settings.offer(welcome);
    this.things.offer(welcome.landmarks, welcome.limits.landmarks);
    this.text.area.maxLength = welcome.limits.text;
    this.grid = welcome.grid ?? this.grid;
    this.#lay();
    this.speed(Number(/** @type {HTMLSelectElement} */ (byId("speed")).value));
    this.#turn("idle", "Connected.");
    if (this.link) return this.#follow();
    if (!this.text.value) this.text.value = this.settings.first;
    else this.text.forget();
    if (this.things.place) this.place(this.things.place);
    else this.stage();
    return undefined;
  }

  /** Set everything as a link has it, and fly. */
  #follow() {
    const link = /** @type {Shared} */ (this.link);
    const known = new Set(this.settings.policies.map(({ name }) => name));
    const missing = link.policies.find((name) => !known.has(name));
    if (missing) {
      this.link = null;
      this.trouble = `This flight was flown by ${missing}, which this studio does not have.`;
      if (this.things.place) this.#admit();
      else this.stage();
      return;
    }
    this.settings.chosen = link.policies;
    this.settings.vehicle = link.vehicle;
    this.settings.corpus.value = "";
    this.text.value = link.texts[0];
    this.#forget();
    this.#lay();
    this.desk.notice("");
    this.things.flush(); // or a change that waits would come after it
    this.link = link; // which that change has dropped
    this.placing.place(link);
  }

  /** @param {any} message */
  async #placed(message) {
    const latest = await this.placing.placed(message);
    if (!latest || this.things.changed) return; // there is something newer
    if (this.phase === "lost" || this.phase === "connecting") return; // while the image was decoded
    const place = /** @type {import("./things.js").Place} */ (this.placing.confirmed);
    this.settings.seed = place.seed;
    this.#forget();
    this.things.set(place);
    this.text.look();
    this.#turn("idle", "Ready.");
    this.#admit();
    const { vehicle } = this.settings;
    if (place.vehicle !== vehicle) {
      this.place({ ...place, vehicle }); // a random layout keeps the drone of the one before
      return;
    }
    const { link, impatient } = this;
    [this.link, this.impatient] = [null, false];
    if (link) {
      this.queue = link.texts.slice(1);
      this.text.value = link.texts[0];
    }
    if (link || impatient) this.fly(false);
  }

  /** There is no room for a flight, or for one that was paused long ago to go on. */
  #busy() {
    if (!this.answers.asking) {
      this.desk.notice(this.refusal, "Try again", () => this.press("pause"));
      return;
    }
    const continued = (this.recording?.texts.length ?? 0) > 1;
    this.#withdraw();
    this.desk.notice(this.refusal, "Try again", () => this.fly(continued));
  }

  /** Things cannot stand where they were put, so they go back. */
  #refused() {
    this.placing.refused();
    const { link } = this;
    [this.link, this.impatient] = [null, false];
    const { confirmed } = this.placing;
    if (!confirmed && link) this.stage(); // something to go on with
    if (this.placing.pending || !confirmed) return;
    this.things.set(confirmed);
    this.settings.vehicle = confirmed.vehicle;
    this.draw();
  }

  /** @param {Phase} phase */
  #state(phase) {
    if (!this.answers.state(phase) || !this.recording || this.recording.ended) return;
    if (phase === "idle") {
      this.#withdraw(); // broken off by the server
      return;
    }
    if (phase === "paused") this.#turn("paused", "Paused.");
    if (phase === "flying" && this.phase !== "flying") {
      this.desk.notice(""); // it may have been too busy to go on
      this.#turn("flying", "Flying…");
    }
  }

  /** @param {import("./socket.js").Frame} frame */
  #see(frame) {
    if (!this.recording || this.answers.resetting || (this.phase !== "flying" && this.phase !== "paused")) return;
    this.recording.add(frame);
    this.playback.grown();
    if (this.playback.follows) this.draw();
    else this.lanes.grow(this.recording, this.playback.tick);
  }

  /** @param {any} message */
  #ended({ lane, reason, seconds, metres, verdict, followed, clauses }) {
    const { recording } = this;
    if (!recording || this.answers.resetting || this.phase === "idle") return;
    const ending = { leg: recording.texts.length - 1, lane, reason, seconds, metres, verdict, followed, clauses };
    recording.endings.push(ending);
    if (recording.ended) {
      const title = (/** @type {number} */ which) => this.settings.title(recording.policies[which]);
      const last = recording.endings.filter(({ leg }) => leg === ending.leg).sort((a, b) => a.lane - b.lane);
      this.#turn("ended", "Flown.", last.map((each) => `${title(each.lane)}: ${endingWords(each)}`).join(" "));
    }
    this.draw();
    const next = recording.ended ? this.queue.shift() : undefined;
    if (next === undefined) return;
    this.text.value = next;
    this.fly(true);
  }

  #lost() {
    const before = this.phase;
    this.placing.forget();
    this.answers.forget();
    [this.impatient, this.queue] = [false, []];
    const why = before === "connecting" ? "The studio cannot be reached." : "The connection to the studio is lost.";
    this.#turn("lost", why);
    const stays = this.recording && !this.recording.empty ? " What was flown can still be replayed here." : "";
    this.desk.notice((this.refusal || why) + stays, "Connect again", () => this.connect());
  }

  /** The policies are others now. */
  #policies() {
    this.#discard();
    this.#lay();
    this.text.forget();
  }

  #lay() {
    this.lanes.lay(this.settings.chosen.map((name) => this.settings.title(name)));
    this.draw();
  }

  /** Drop what was flown, here and on the server. */
  #discard() {
    if (!this.recording) return;
    this.answers.reset(this.connection.send({ type: "reset" }));
    this.queue = [];
    this.#forget();
    this.#turn("idle", "Back at the start.");
  }

  #forget() {
    this.recording = null;
    this.playback.set(null);
    this.draw();
  }

  /** The flight that was asked for does not take place. */
  #withdraw() {
    this.answers.asking = false;
    this.queue = [];
    const leg = (this.recording?.texts.length ?? 0) - 1;
    const begun = this.recording?.lanes.some((lane) => lane.at(-1)?.leg === leg);
    if (!begun) this.recording?.withdraw();
    if (this.recording?.empty) this.#forget();
    this.#turn(this.recording ? "ended" : "idle", "Ready.");
  }

  /**
   * @param {Phase} phase
   * @param {string} words For the status line.
   * @param {string} [spoken] The same at length, for those who hear it.
   */
  #turn(phase, words, spoken) {
    this.phase = phase;
    this.settings.enable(this.#ready);
    this.things.enable(this.#ready);
    this.text.enable(this.#ready);
    this.takeaway.set(this.recording, phase === "ended" || phase === "lost", phase !== "lost");
    this.desk.turn(phase, words, spoken);
    this.draw();
  }
}
