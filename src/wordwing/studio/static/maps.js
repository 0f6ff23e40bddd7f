/** The small images of what happens between camera and decision, each with a line that says what it is. */

import { EDGE, OUTSIDE, SEEN, UNOBSERVED } from "./colours.js";
import { make, sized } from "./dom.js";
import { mapTransform } from "./geometry.js";
import { drawDrone } from "./pencils.js";

/** @typedef {import("./socket.js").Frame} Frame */
/** @typedef {import("./socket.js").Raster} Raster */

/** @type {{name: string, title: string, symbol: [string, string], wide: boolean, says: string}[]} */
const PANELS = [
  {
    name: "image", title: "camera", symbol: ["I", ""], wide: true,
    says: "Camera: what the drone sees now, 128 × 72 pixels and 84° wide. The view from above it never sees.",
  },
  {
    name: "features", title: "features", symbol: ["F", "C"], wide: true,
    says: "Features: what the network makes of the image. Like colours are like features, within one instruction.",
  },
  {
    name: "semantic", title: "memory", symbol: ["S", "W"], wide: false,
    says: "Memory: the features of all images so far, laid on the ground where they belong. Grey is not seen yet.",
  },
  {
    name: "grounding", title: "picked", symbol: ["R", "W"], wide: false,
    says: "Picked by the words: the memory, filtered by what the sentence says. Its colours are its own.",
  },
  {
    name: "masks", title: "looked at", symbol: ["M", "W"], wide: false,
    says: "Looked at: purple is the ground it has looked at, dark the edge of the arena. From here comes p_oob.",
  },
];

const INVITATION = "Point at an image, or choose it, to read what it is.";

/** Bits of the masks. */
const OBSERVED = 1, ARENA = 2, BOUNDARY = 4;

export class Panels {
  /**
   * @param {HTMLElement} place Where the images go.
   * @param {HTMLElement} line Where the explanations go.
   * @param {number} lane Of which drone they are: ids of elements differ by it.
   */
  constructor(place, line, lane) {
    /** @type {Map<string, HTMLCanvasElement>} */
    this.canvases = new Map();
    line.textContent = INVITATION;
    for (const { name, title, symbol, wide, says } of PANELS) {
      const canvas = /** @type {HTMLCanvasElement} */ (make("canvas", { "aria-hidden": "true" }));
      const sign = make("var", {}, symbol[0], make("sup", {}, symbol[1]));
      const caption = make("span", { class: "caption" }, `${title} `, sign);
      const id = `says-${name}-${lane}`;
      const tile = make("button", { type: "button", class: wide ? "tile wide" : "tile" }, canvas, caption);
      line.before(make("span", { class: "hidden", id }, says));
      tile.setAttribute("aria-describedby", id);
      const explain = () => (line.textContent = says);
      for (const event of ["focus", "pointerenter", "click"]) tile.addEventListener(event, explain);
      this.canvases.set(name, canvas);
      place.append(tile);
    }
    this.#buffer = document.createElement("canvas");
    new ResizeObserver(() => this.#draw()).observe(place);
  }

  /** @type {HTMLCanvasElement} */
  #buffer;
  /** @type {Frame | null} */
  #frame = null;
  #grid = { cells: 64, size: 9.4 };
  #extent = 5;

  /**
   * @param {Frame | null} frame
   * @param {{cells: number, size: number}} grid
   * @param {number} extent Metres across the maps as they are shown.
   */
  show(frame, grid, extent) {
    [this.#frame, this.#grid, this.#extent] = [frame, grid, extent];
    this.#draw();
  }

  #draw() {
    for (const { name, wide } of PANELS) {
      const canvas = /** @type {HTMLCanvasElement} */ (this.canvases.get(name));
      const { context, width, height, ratio } = sized(canvas);
      const image = this.#frame?.images[name];
      context.clearRect(0, 0, width, height);
      if (!this.#frame || !image) continue;
      if (!wide) {
        context.fillStyle = `rgb(${OUTSIDE.join(" ")})`;
        context.fillRect(0, 0, width, height);
      }
      this.#load(image, name);
      context.imageSmoothingEnabled = name === "image";
      context.imageSmoothingQuality = "high";
      if (wide) {
        context.drawImage(this.#buffer, 0, 0, width, height);
        continue;
      }
      context.transform(...mapTransform(this.#frame.frame, this.#grid, width, this.#extent));
      context.drawImage(this.#buffer, 0, 0);
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      const [x, y, , , , yaw] = this.#frame.pose;
      drawDrone(context, { x, y, yaw }, width, this.#extent, 2);
    }
  }

  /**
   * Put bytes into the buffer, to be drawn from there.
   * @param {Raster} image
   * @param {string} name
   */
  #load({ shape: [rows, columns], data }, name) {
    const pixels = new ImageData(columns, rows);
    for (let cell = 0; cell < rows * columns; cell += 1) {
      const colour = name === "masks" ? maskColour(data[cell]) : data.subarray(3 * cell, 3 * cell + 3);
      pixels.data.set(colour, 4 * cell);
      pixels.data[4 * cell + 3] = 255;
    }
    [this.#buffer.width, this.#buffer.height] = [columns, rows];
    this.#buffer.getContext("2d")?.putImageData(pixels, 0, 0);
  }
}

/** @param {number} bits */
function maskColour(bits) {
  if (bits & BOUNDARY) return EDGE;
  if (!(bits & ARENA)) return OUTSIDE;
  return bits & OBSERVED ? SEEN : UNOBSERVED;
}
