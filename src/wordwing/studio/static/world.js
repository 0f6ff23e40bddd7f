/** The view from above: the world, what the drone looks at and intends, where it has been. */

import { FLOWN, INK, PASS, STOP, WHITE } from "./colours.js";
import { sized, still } from "./dom.js";
import { drawDrone, drawRule, stroke, write } from "./pencils.js";
import { FIELD_OF_VIEW, HANDLE, mapTransform, toView, wrapped } from "./geometry.js";

/** @typedef {import("./geometry.js").Place} Place */
/** @typedef {import("./recording.js").Kept} Kept */
/** @typedef {{path: boolean, goal: boolean, view: boolean, flown: boolean, names: boolean, opacity: number}} Layers */
/** @typedef {{name: string, x: number, y: number, yaw?: number}} Landmark */

/** Milliseconds in which the drone glides from one decision to the next. */
const GLIDE = 220;

/**
 * @typedef {object} Scene What there is to see.
 * @property {CanvasImageSource | null} ground Image of the world from above.
 * @property {number} extent Metres across it.
 * @property {Landmark[]} landmarks
 * @property {Place} start
 * @property {Kept[]} past Decisions up to now.
 * @property {Kept[]} coming Decisions after now, in a replay.
 * @property {[number, number]} peaks Largest cells of d^p and d^g in this instruction.
 * @property {{cells: number, size: number}} grid
 * @property {Layers} layers
 * @property {number | "drone" | null} chosen A landmark's number.
 * @property {boolean} editable
 * @property {(name: string) => number} radius Of a kind of landmark, metres.
 */

export class WorldView {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    /** @type {Scene | null} */
    this.scene = null;
    this.#glow = document.createElement("canvas");
    new ResizeObserver(() => this.#request()).observe(canvas);
  }

  /** @type {HTMLCanvasElement} */
  #glow;
  #requested = false;
  /** @type {{from: Place, to: Place, since: number} | null} */
  #glide = null;

  get #font() {
    return getComputedStyle(this.canvas).fontFamily;
  }

  /** Pixels across. */
  get size() {
    return this.canvas.clientWidth || 1;
  }

  /** Where the drone is drawn when it has come to rest. @returns {Place} */
  get drone() {
    const last = this.scene?.past.at(-1)?.frame.pose;
    return last ? { x: last[0], y: last[1], yaw: last[5] } : (this.scene?.start ?? { x: 0, y: 0, yaw: 0 });
  }

  /** Whether the drone has its handle: after a flight only if it is chosen, so that it hides nothing. */
  get turnable() {
    return Boolean(this.scene?.editable && (!this.scene.past.length || this.scene.chosen === "drone"));
  }

  /** @param {Scene} scene */
  show(scene) {
    const before = this.scene ? this.drone : null;
    const steps = scene.past.length - (this.scene?.past.length ?? 0);
    this.scene = scene;
    if (steps) this.#glide = null;
    if (before && steps === 1 && scene.past.length > 1 && !still()) {
      this.#glide = { from: before, to: this.drone, since: performance.now() };
    }
    this.#request();
  }

  #request() {
    if (this.#requested) return;
    this.#requested = true;
    requestAnimationFrame(() => {
      this.#requested = false;
      this.#draw();
    });
  }

  /** @returns {Place} Where the drone is at this moment of its glide. */
  #gliding() {
    if (!this.#glide) return this.drone;
    const { from, to, since } = this.#glide;
    const share = (performance.now() - since) / GLIDE;
    if (share >= 1) {
      this.#glide = null;
      return to;
    }
    this.#request();
    const mix = (/** @type {number} */ a, /** @type {number} */ b) => a + share * (b - a);
    return { x: mix(from.x, to.x), y: mix(from.y, to.y), yaw: from.yaw + share * wrapped(to.yaw - from.yaw) };
  }

  #draw() {
    const { scene } = this;
    if (!scene) return;
    const { context, width, ratio } = sized(this.canvas);
    const drone = this.#gliding();
    const thinking = scene.past.length > 0 && (scene.layers.path || scene.layers.goal);
    context.fillStyle = "rgb(128 128 124)";
    context.fillRect(0, 0, width, width);
    if (scene.ground) {
      context.filter = thinking ? "grayscale(0.6) brightness(0.68)" : "none";
      context.drawImage(scene.ground, 0, 0, width, width);
      context.filter = "none";
    }
    if (scene.layers.view) this.#view(context, drone, width, 0.22);
    if (thinking) this.#intentions(context, width, ratio);
    if (scene.layers.flown) this.#flown(context, drone, width);
    if (scene.editable) this.#handles(context, drone, width);
    if (scene.layers.names) this.#names(context, width);
    drawDrone(context, drone, width, scene.extent);
    drawRule(context, width, scene.extent, this.#font);
  }

  /**
   * All but the field of view in shade.
   * @param {CanvasRenderingContext2D} context
   * @param {Place} drone
   * @param {number} size
   * @param {number} shade
   */
  #view(context, drone, size, shade) {
    const extent = this.scene?.extent ?? 5;
    const [right, down] = toView(drone.x, drone.y, size, extent);
    // World angles run counter-clockwise from up; the canvas's run clockwise from the right.
    const ahead = -Math.PI / 2 - drone.yaw;
    context.beginPath();
    context.rect(0, 0, size, size);
    context.moveTo(right, down);
    context.arc(right, down, 2 * size, ahead - FIELD_OF_VIEW / 2, ahead + FIELD_OF_VIEW / 2);
    context.closePath();
    context.fillStyle = `rgb(0 0 0 / ${shade})`;
    context.fill("evenodd");
    context.beginPath();
    for (const side of [-1, 1]) {
      const edge = ahead + (side * FIELD_OF_VIEW) / 2;
      context.moveTo(right, down);
      context.lineTo(right + 2 * size * Math.cos(edge), down + 2 * size * Math.sin(edge));
    }
    context.strokeStyle = "rgb(255 255 255 / 0.55)";
    context.lineWidth = 1;
    context.stroke();
  }

  /**
   * d^p and d^g as light on the ground; a tone is the same probability throughout an instruction.
   * @param {CanvasRenderingContext2D} context
   * @param {number} size
   * @param {number} ratio
   */
  #intentions(context, size, ratio) {
    const scene = /** @type {Scene} */ (this.scene);
    const { frame } = /** @type {Kept} */ (scene.past.at(-1));
    for (const [number, name] of /** @type {["path", "goal"]} */ (["path", "goal"]).entries()) {
      const map = frame.images[name];
      if (!scene.layers[name] || !map) continue;
      const share = (frame.peaks?.[number] ?? 1) / Math.max(1e-9, scene.peaks[number]);
      const [red, green, blue] = [PASS, STOP][number];
      const [rows, columns] = map.shape;
      const pixels = new ImageData(columns, rows);
      map.data.forEach((value, cell) => {
        pixels.data.set([red, green, blue, 255 * Math.sqrt(Math.min(1, (share * value) / 255))], 4 * cell);
      });
      [this.#glow.width, this.#glow.height] = [columns, rows];
      this.#glow.getContext("2d")?.putImageData(pixels, 0, 0);
      context.save();
      context.transform(...mapTransform(frame.frame, scene.grid, size, scene.extent));
      context.globalAlpha = scene.layers.opacity;
      context.imageSmoothingEnabled = true;
      context.imageSmoothingQuality = ratio > 1 ? "medium" : "high";
      context.drawImage(this.#glow, 0, 0);
      context.restore();
    }
    if (scene.layers.goal && frame.goal) {
      const [right, down] = toView(frame.goal[0], frame.goal[1], size, scene.extent);
      context.beginPath();
      context.arc(right, down, 7, 0, 2 * Math.PI);
      stroke(context, `rgb(${STOP.join(" ")})`, 2.5, INK, 5);
    }
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {Place} drone
   * @param {number} size
   */
  #flown(context, drone, size) {
    const { past, coming, extent } = /** @type {Scene} */ (this.scene);
    const line = (/** @type {{x: number, y: number}[]} */ points) => {
      context.beginPath();
      points.forEach(({ x, y }) => context.lineTo(...toView(x, y, size, extent)));
    };
    const places = (/** @type {Kept[]} */ kept) => kept.map(({ frame: { pose } }) => ({ x: pose[0], y: pose[1] }));
    context.lineJoin = context.lineCap = "round";
    if (coming.length && past.length) {
      context.setLineDash([1, 6]);
      line(places([past[past.length - 1], ...coming]));
      stroke(context, WHITE, 2, INK, 3);
      context.setLineDash([]);
    }
    if (!past.length) return;
    line([...places(past.slice(0, -1)), drone]);
    stroke(context, FLOWN, 3.5, WHITE, 6);
    const [first] = places(past);
    context.beginPath();
    context.arc(...toView(first.x, first.y, size, extent), 4, 0, 2 * Math.PI);
    context.fillStyle = WHITE;
    context.fill();
    stroke(context, FLOWN, 2);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} size
   */
  #names(context, size) {
    const { landmarks, radius, extent } = /** @type {Scene} */ (this.scene);
    context.font = `600 ${size < 420 ? 12 : 13}px ${this.#font}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (const { name, x, y } of landmarks) {
      const half = context.measureText(name).width / 2 + 4;
      const [right, down] = toView(x, y, size, extent);
      const below = down + (0.9 * radius(name) * size) / extent + 8;
      const clear = below > size - 10 ? 2 * down - below : below;
      write(context, name, Math.min(size - half, Math.max(half, right)), clear);
    }
  }

  /**
   * Rings around what is chosen, and the handle that turns the drone.
   * @param {CanvasRenderingContext2D} context
   * @param {Place} drone
   * @param {number} size
   */
  #handles(context, drone, size) {
    const { landmarks, radius, extent, chosen } = /** @type {Scene} */ (this.scene);
    if (this.turnable) {
      const here = toView(drone.x, drone.y, size, extent);
      const tip = toView(drone.x + HANDLE * Math.cos(drone.yaw), drone.y + HANDLE * Math.sin(drone.yaw), size, extent);
      context.beginPath();
      context.moveTo(...here);
      context.lineTo(...tip);
      stroke(context, WHITE, 1.5, INK, 3);
      context.beginPath();
      context.arc(...tip, 6, 0, 2 * Math.PI);
      context.fillStyle = WHITE;
      context.fill();
      stroke(context, FLOWN, 2.5);
    }
    if (chosen === null) return;
    const place = chosen === "drone" ? drone : landmarks[chosen];
    if (!place) return;
    const reach = chosen === "drone" ? 0.3 : 1.1 * radius(landmarks[chosen].name);
    const [right, down] = toView(place.x, place.y, size, extent);
    context.beginPath();
    context.arc(right, down, Math.max(14, (reach * size) / extent), 0, 2 * Math.PI);
    stroke(context, WHITE, 2.5, INK, 5);
  }
}
