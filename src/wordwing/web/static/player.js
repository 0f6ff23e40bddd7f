/** What is watched: the video with its keys, and what things look like. */

import { byId, still } from "./dom.js";

export class Player {
  constructor() {
    this.video = /** @type {HTMLVideoElement} */ (byId("video"));
    this.legend = /** @type {HTMLImageElement} */ (byId("legend"));
    this.slider = /** @type {HTMLInputElement} */ (byId("moment"));
    this.legend.addEventListener("load", () => {
      // So that the page keeps its place while the next one loads.
      this.legend.width = this.legend.naturalWidth;
      this.legend.height = this.legend.naturalHeight;
    });
    // A browser's own keys lie over the video and would hide where the drone stopped.
    byId("play").addEventListener("click", () => this.#toggle());
    this.video.addEventListener("click", () => this.#toggle());
    this.slider.addEventListener("input", () => this.#seek());
    for (const event of ["play", "pause", "ended", "timeupdate", "seeked", "loadedmetadata", "emptied"]) {
      this.video.addEventListener(event, () => this.#draw());
    }
  }

  /**
   * @param {string} id Of what has the video.
   * @param {string} [things] Of what has the legend.
   */
  show(id, things = id) {
    const folder = `/media/${encodeURIComponent(id)}`;
    this.video.autoplay = !still();
    this.video.muted = true;
    this.video.poster = `${folder}/still`;
    this.video.src = `${folder}/video`;
    this.legend.src = `/media/${encodeURIComponent(things)}/legend`;
  }

  /** Fetch again what did not come. */
  again() {
    const { legend, video } = this;
    if (!legend.complete || !legend.naturalWidth) legend.src = legend.getAttribute("src") ?? "";
    video.load();
  }

  clear() {
    this.video.removeAttribute("src");
    this.video.removeAttribute("poster");
    this.video.load();
    this.legend.removeAttribute("src");
  }

  #toggle() {
    if (this.video.paused) this.video.play().catch(() => undefined); // what does not load is said elsewhere
    else this.video.pause();
  }

  #seek() {
    this.video.pause();
    this.video.currentTime = (Number(this.slider.value) / 100) * (this.video.duration || 0);
  }

  #draw() {
    const { video, slider } = this;
    const [now, whole] = [video.currentTime, video.duration || 0].map((seconds) => seconds.toFixed(1));
    byId("play").textContent = video.ended ? "Play again" : video.paused ? "Play" : "Pause";
    byId("clock").textContent = `${now} / ${whole} s`;
    slider.setAttribute("aria-valuetext", `${now} of ${whole} seconds`);
    if (video.paused && document.activeElement === slider) return; // it is where it was put
    slider.value = String(video.duration ? (100 * video.currentTime) / video.duration : 0);
  }
}
