/** Where things lie in a view from above: world x up, world y left, the arena's centre in the middle. */

/** @typedef {{x: number, y: number, yaw: number}} Place */

/** Half the arena's edge, metres. */
const HALF = 2.35;

/** Horizontal field of view of the camera, radians. */
export const FIELD_OF_VIEW = (84 * Math.PI) / 180;

/** Metres from the drone to the handle that turns it. */
export const HANDLE = 0.5;

/**
 * @param {number} x Metres.
 * @param {number} y Metres.
 * @param {number} size Pixels across the view.
 * @param {number} extent Metres across the view.
 * @returns {[number, number]} Pixels right and down.
 */
export function toView(x, y, size, extent) {
  return [size * (0.5 - y / extent), size * (0.5 - x / extent)];
}

/**
 * @param {number} right Pixels.
 * @param {number} down Pixels.
 * @param {number} size
 * @param {number} extent
 * @returns {[number, number]} World x and y, metres.
 */
export function toWorld(right, down, size, extent) {
  return [extent * (0.5 - down / size), extent * (0.5 - right / size)];
}

/**
 * The transform that lays a map of the start frame into a view from above. Row 0 of a map lies farthest ahead of the
 * start, column 0 farthest to the left, and the start is where the four middle cells meet.
 * @param {[number, number, number]} frame x, y, yaw of the start.
 * @param {{cells: number, size: number}} grid Cells along an edge, and metres.
 * @param {number} size Pixels across the view.
 * @param {number} extent Metres across the view.
 * @returns {[number, number, number, number, number, number]} As `setTransform` has it, from (column, row) to pixels.
 */
export function mapTransform([x, y, yaw], grid, size, extent) {
  const [cos, sin] = [Math.cos(yaw), Math.sin(yaw)];
  const scale = size / extent;
  const cell = (scale * grid.size) / grid.cells;
  const half = grid.size / 2;
  return [
    cell * cos,
    -cell * sin,
    cell * sin,
    cell * cos,
    size / 2 - scale * (y + (sin + cos) * half),
    size / 2 - scale * (x + (cos - sin) * half),
  ];
}

/** @param {number} angle @returns {number} The same between -π and π. */
export function wrapped(angle) {
  return Math.atan2(Math.sin(angle), Math.cos(angle));
}

/**
 * A number between the arena's fences.
 * @param {number} value
 * @param {number} margin Metres to keep from them.
 */
export function inside(value, margin = 0) {
  const most = HALF - margin;
  return Math.min(most, Math.max(-most, value));
}
