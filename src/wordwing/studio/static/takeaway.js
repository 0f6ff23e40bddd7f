/** What visitors can take with them: the episode, a video of it, a link that flies it again. */

import { byId, download, make, sentence } from "./dom.js";
import { toLink } from "./link.js";

/** @typedef {import("./recording.js").Recording} Recording */

/** Milliseconds between two questions how far a video is. */
const ASK = 1000;

export class Takeaway {
  /** @param {() => void} keep Asks the server to keep the episode; the answer comes through `kept`. */
  constructor(keep) {
    /** @type {Recording | null} */
    this.recording = null;
    this.said = byId("taken");
    this.videos = byId("videos");
    this.video = byId("video-progress");
    this.share = /** @type {HTMLProgressElement} */ (byId("video-share"));
    this.field = /** @type {HTMLInputElement} */ (byId("link"));
    byId("share").addEventListener("click", () => this.#copy());
    byId("episode").addEventListener("click", () => {
      if (!this.recording) return;
      const text = JSON.stringify(this.recording, null, 1);
      download(new Blob([text], { type: "application/json" }), "wordwing-episode.json");
    });
    byId("keep").addEventListener("click", keep);
    this.field.addEventListener("focus", () => this.field.select());
  }

  #rendering = false;
  #flown = false;
  #connected = false;

  /**
   * @param {Recording | null} recording
   * @param {boolean} ended
   * @param {boolean} connected
   */
  set(recording, ended, connected) {
    const changed = recording !== this.recording;
    this.recording = recording;
    this.#flown = Boolean(recording && !recording.empty && ended);
    this.#connected = connected;
    if (!this.#flown) {
      byId("link-row").hidden = true; // it would lead to an older flight
      this.field.value = "";
    }
    const policies = recording?.policies.length ? recording.policies : [""];
    if (changed || this.videos.children.length !== policies.length) {
      if (changed && !this.#rendering) this.said.textContent = "";
      this.videos.replaceChildren(
        ...policies.map((policy) => {
          const label = policies.length > 1 ? `Video of ${policy}` : "Video (MP4)";
          const button = make("button", { type: "button" }, label);
          button.addEventListener("click", () => this.#make(policy));
          return button;
        }),
      );
    }
    this.#enable();
  }

  #enable() {
    for (const id of ["share", "episode"]) byId(id).toggleAttribute("disabled", !this.#flown);
    byId("keep").toggleAttribute("disabled", !this.#flown || !this.#connected);
    const can = this.#flown && this.#connected && !this.#rendering;
    for (const button of this.videos.children) button.toggleAttribute("disabled", !can);
  }

  /** @param {string} id Of a kept episode. */
  kept(id) {
    const address = `/episodes/${encodeURIComponent(id)}`;
    const numbers = make("a", { href: `${address}.json`, target: "_blank", rel: "noopener" }, "its address");
    const video = make("button", { type: "button", class: "wide" }, "Video of the kept episode");
    video.addEventListener("click", () => this.#render(async () => `${address}.mp4`));
    this.said.replaceChildren("Kept on this server: ", numbers, ". ", video);
  }

  async #copy() {
    const { recording } = this;
    if (!recording) return;
    const address = await toLink(recording.shared);
    this.field.value = address;
    byId("link-row").hidden = false;
    const note = recording.byHand ? " It flies to the end what was stopped by hand." : "";
    try {
      await navigator.clipboard.writeText(address);
      this.said.textContent = `Link copied.${note}`;
    } catch {
      this.field.focus();
      this.said.textContent = `Copy the link from the field above.${note}`;
    }
  }

  /**
   * Have the flight of one policy flown again and rendered as a video.
   * @param {string} policy
   */
  #make(policy) {
    if (!this.recording) return;
    const { layout, start, seed, vehicle, texts } = this.recording.shared;
    const body = JSON.stringify({ layout, start, seed, vehicle, policies: [policy], texts });
    this.#render(async () => {
      const asked = await fetch("/video", { method: "POST", body, headers: { "Content-Type": "application/json" } });
      const { job, message } = await asked.json().catch(() => ({}));
      if (!asked.ok) throw new Error(message ? sentence(message) : "The video could not be begun.");
      return `/video/${encodeURIComponent(job)}`;
    });
  }

  /**
   * Wait for a video and download it.
   * @param {() => Promise<string>} begin Answers where it will be.
   */
  async #render(begin) {
    if (this.#rendering) return;
    this.#rendering = true;
    this.#enable();
    this.share.value = 0;
    this.video.hidden = false;
    this.said.textContent = "The flight is flown again and rendered as a video; that takes a while.";
    try {
      download(await this.#wait(await begin()), "wordwing-flight.mp4");
      this.said.textContent = "The video is in your downloads.";
    } catch (error) {
      const silent = error instanceof TypeError; // so fetch says that nobody answers
      this.said.textContent = silent ? "The studio does not answer." : /** @type {Error} */ (error).message;
    }
    this.#rendering = false;
    this.video.hidden = true;
    this.#enable();
  }

  /** @param {string} address @returns {Promise<Blob>} */
  async #wait(address) {
    for (;;) {
      const answer = await fetch(address);
      if (answer.status === 200) return answer.blob();
      const { share, message } = await answer.json().catch(() => ({}));
      if (answer.status !== 202) throw new Error(message ? sentence(message) : "The video could not be made.");
      this.share.value = Number(share) || 0;
      await new Promise((resolve) => setTimeout(resolve, ASK));
    }
  }
}
