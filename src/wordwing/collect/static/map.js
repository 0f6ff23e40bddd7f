/** The field from above, with the drone and lines over it: world x up, world y left, the centre in the middle. */

/** Metres across the image, and half the edge of the field. */
const EXTENT = 5;
const HALF = 2.35;

/** Units across the drawing. */
const SIZE = 1000;

/** @typedef {[number, number]} Point Metres. */

const OUTLINE = [[0.22, 0], [-0.115, 0.092], [-0.046, 0], [-0.115, -0.092]];

/** @param {Point} point */
const onMap = ([x, y]) => [SIZE * (0.5 - y / EXTENT), SIZE * (0.5 - x / EXTENT)];

/** @param {Point[]} points */
const listed = (points) => points.map((point) => onMap(point).map((value) => value.toFixed(1)).join(",")).join(" ");

/** @param {number} value */
const inside = (value) => Math.round(1e4 * Math.min(HALF, Math.max(-HALF, value))) / 1e4;

export class FieldMap {
  /** @param {HTMLImageElement} image With a drawing beside it. */
  constructor(image) {
    this.image = image;
    this.svg = /** @type {SVGSVGElement} */ (image.parentElement?.querySelector("svg"));
  }

  /** @param {string} id Of what has the map. */
  show(id) {
    this.image.src = `/media/${encodeURIComponent(id)}/map`;
  }

  /** @param {number[]} pose x, y and yaw. */
  drone([x, y, yaw]) {
    const [cos, sin] = [Math.cos(yaw), Math.sin(yaw)];
    const corners = OUTLINE.map(([a, b]) => /** @type {Point} */ ([x + cos * a - sin * b, y + sin * a + cos * b]));
    this.svg.querySelector(".drone")?.setAttribute("points", listed(corners));
  }

  /**
   * @param {string} name Class of the line.
   * @param {Point[]} points
   */
  line(name, points) {
    this.svg.querySelector(`.${name}`)?.setAttribute("points", listed(points));
  }

  /** @param {PointerEvent} event @returns {Point} */
  at(event) {
    const box = this.svg.getBoundingClientRect();
    return [
      inside(EXTENT * (0.5 - (event.clientY - box.top) / box.height)),
      inside(EXTENT * (0.5 - (event.clientX - box.left) / box.width)),
    ];
  }
}

const STEP = { ArrowUp: [1, 0], ArrowDown: [-1, 0], ArrowLeft: [0, 1], ArrowRight: [0, -1] };
const SIDES = ["ahead of", "ahead and left of", "left of", "behind and left of", "behind", "behind and right of", "right of", "ahead and right of"];

/** A line that somebody draws from the drone on, stroke by stroke. */
export class Sketch {
  /**
   * @param {FieldMap} map
   * @param {(words: string) => void} said Told where the line ends.
   */
  constructor(map, said) {
    this.map = map;
    this.said = said;
    this.most = 2;
    this.pose = [0, 0, 0];
    this.locked = true;
    /** @type {Point[][]} */
    this.strokes = [];
    const { svg } = map;
    svg.addEventListener("pointerdown", (event) => {
      if (this.locked || event.button) return;
      svg.setPointerCapture(event.pointerId);
      this.#add([map.at(event)]);
    });
    svg.addEventListener("pointermove", (event) => {
      if (svg.hasPointerCapture(event.pointerId)) this.#extend(map.at(event));
    });
    svg.addEventListener("keydown", (event) => this.#press(event));
  }

  /** @param {number[]} pose Of the drone. */
  begin(pose) {
    this.pose = pose;
    this.strokes = [];
    this.locked = false;
    this.map.drone(pose);
    this.map.line("meant", []);
    this.#draw();
  }

  /** @returns {Point[]} */
  get points() {
    return [/** @type {Point} */ (this.pose.slice(0, 2)), ...this.strokes.flat()];
  }

  undo() {
    if (this.locked) return;
    this.strokes.pop();
    this.#draw();
  }

  clear() {
    if (this.locked) return;
    this.strokes = [];
    this.#draw();
  }

  /**
   * Nothing can be changed any more.
   * @param {Point[]} meant Where the line should have led.
   */
  lock(meant) {
    this.locked = true;
    this.map.line("meant", meant);
  }

  /** @param {Point[]} stroke */
  #add(stroke) {
    if (this.points.length + stroke.length > this.most) return;
    this.strokes.push(stroke);
    this.#draw();
  }

  /** @param {Point} point */
  #extend(point) {
    const [x, y] = this.points.at(-1) ?? point;
    if (Math.hypot(point[0] - x, point[1] - y) < 0.05 || this.points.length >= this.most) return;
    this.strokes.at(-1)?.push(point);
    this.#draw();
  }

  /** @param {KeyboardEvent} event */
  #press(event) {
    if (this.locked || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = STEP[/** @type {keyof typeof STEP} */ (event.key)];
    const [x, y] = this.points.at(-1) ?? [0, 0];
    const size = event.shiftKey ? 0.02 : 0.1;
    if (step) this.#add([[inside(x + size * step[0]), inside(y + size * step[1])]]);
    else if (event.key === "Backspace" || event.key === "Delete") this.undo();
    else return;
    event.preventDefault();
  }

  #draw() {
    const points = this.points;
    for (const name of ["casing", "drawn"]) this.map.line(name, points);
    const tip = this.map.svg.querySelector(".tip");
    const end = /** @type {Point} */ (points.at(-1));
    const [right, down] = onMap(end);
    tip?.setAttribute("cx", String(right));
    tip?.setAttribute("cy", String(down));
    tip?.classList.toggle("none", points.length < 2);
    this.said(points.length < 2 ? "" : this.#words(end));
  }

  /** @param {Point} end */
  #words([x, y]) {
    const [ahead, left] = [x - this.pose[0], y - this.pose[1]];
    const turn = Math.atan2(left, ahead) - this.pose[2];
    const side = SIDES[((Math.round((8 * turn) / (2 * Math.PI)) % 8) + 8) % 8];
    return `Your line ends ${Math.hypot(ahead, left).toFixed(1)} m ${side} the drone.`;
  }
}
