/** What is watched: the film with its keys, and the numbered objects. */

import { byId, still } from "./dom.js";

export class Stage {
  constructor() {
    this.film = /** @type {HTMLVideoElement} */ (byId("film"));
    this.legend = /** @type {HTMLImageElement} */ (byId("legend"));
    this.slider = /** @type {HTMLInputElement} */ (byId("moment"));
    this.legend.addEventListener("load", () => {
      // So that the page keeps its place while the next one loads.
      this.legend.width = this.legend.naturalWidth;
      this.legend.height = this.legend.naturalHeight;
    });
    // A browser's own keys lie over the film and would hide where the drone stopped.
    byId("play").addEventListener("click", () => this.#toggle());
    this.film.addEventListener("click", () => this.#toggle());
    this.slider.addEventListener("input", () => this.#seek());
    for (const event of ["play", "pause", "ended", "timeupdate", "seeked", "loadedmetadata", "emptied"]) {
      this.film.addEventListener(event, () => this.#draw());
    }
  }

  /** @param {string} id Of the item. */
  show(id) {
    const folder = `/pictures/${encodeURIComponent(id)}`;
    this.film.autoplay = !still();
    this.film.muted = true;
    this.film.poster = `${folder}/still`;
    this.film.src = `${folder}/film`;
    this.legend.src = `${folder}/legend`;
  }

  /** Fetch again what did not come. */
  again() {
    const { legend, film } = this;
    if (!legend.complete || !legend.naturalWidth) legend.src = legend.getAttribute("src") ?? "";
    film.load();
  }

  clear() {
    this.film.removeAttribute("src");
    this.film.removeAttribute("poster");
    this.film.load();
    this.legend.removeAttribute("src");
  }

  #toggle() {
    if (this.film.paused) this.film.play().catch(() => undefined); // what does not load is said elsewhere
    else this.film.pause();
  }

  #seek() {
    this.film.pause();
    this.film.currentTime = (Number(this.slider.value) / 100) * (this.film.duration || 0);
  }

  #draw() {
    const { film, slider } = this;
    const [now, whole] = [film.currentTime, film.duration || 0].map((seconds) => seconds.toFixed(1));
    byId("play").textContent = film.ended ? "Play again" : film.paused ? "Play" : "Pause";
    byId("clock").textContent = `${now} / ${whole} s`;
    slider.setAttribute("aria-valuetext", `${now} of ${whole} seconds`);
    if (film.paused && document.activeElement === slider) return; // it is where it was put
    slider.value = String(film.duration ? (100 * film.currentTime) / film.duration : 0);
  }
}
