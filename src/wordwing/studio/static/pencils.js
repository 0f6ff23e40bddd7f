/** Marks that views from above are made of; all of them can be seen on any ground. */

import { FLOWN, WHITE } from "./colours.js";
import { toView } from "./geometry.js";

const SHADE = "rgb(20 20 20 / 0.85)";

/**
 * Stroke the path, with a casing that sets it off from any ground.
 * @param {CanvasRenderingContext2D} context
 * @param {string} colour
 * @param {number} width
 * @param {string} [casing]
 * @param {number} [around] Width of the casing.
 */
export function stroke(context, colour, width, casing, around = width) {
  if (casing) {
    context.strokeStyle = casing;
    context.lineWidth = around;
    context.stroke();
  }
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.stroke();
}

/**
 * White words with a dark rim, in the context's font and alignment.
 * @param {CanvasRenderingContext2D} context
 * @param {string} words
 * @param {number} right Pixels.
 * @param {number} down Pixels.
 */
export function write(context, words, right, down) {
  context.lineJoin = "round";
  context.strokeStyle = SHADE;
  context.lineWidth = 3.5;
  context.strokeText(words, right, down);
  context.fillStyle = WHITE;
  context.fillText(words, right, down);
}

/**
 * The arrow that stands for a drone.
 * @param {CanvasRenderingContext2D} context
 * @param {import("./geometry.js").Place} drone
 * @param {number} size Pixels across the view.
 * @param {number} extent Metres across the view.
 * @param {number} scale How much larger than true.
 */
export function drawDrone(context, drone, size, extent, scale = 1) {
  const [cos, sin] = [scale * Math.cos(drone.yaw), scale * Math.sin(drone.yaw)];
  context.beginPath();
  for (const [ahead, left] of [[0.19, 0], [-0.1, 0.09], [-0.04, 0], [-0.1, -0.09]]) {
    context.lineTo(...toView(drone.x + cos * ahead - sin * left, drone.y + sin * ahead + cos * left, size, extent));
  }
  context.closePath();
  context.lineJoin = "round";
  context.strokeStyle = WHITE;
  context.lineWidth = scale > 1 ? 2.5 : 4;
  context.stroke();
  context.fillStyle = FLOWN;
  context.fill();
}

/**
 * One metre, to scale, in the lower left corner.
 * @param {CanvasRenderingContext2D} context
 * @param {number} size
 * @param {number} extent
 * @param {string} font Family.
 */
export function drawRule(context, size, extent, font) {
  const [left, base] = [14, size - 14];
  context.beginPath();
  context.moveTo(left, base - 4);
  context.lineTo(left, base);
  context.lineTo(left + size / extent, base);
  context.lineTo(left + size / extent, base - 4);
  stroke(context, WHITE, 1.5, SHADE, 3.5);
  context.font = `600 12px ${font}`;
  context.textAlign = "left";
  context.textBaseline = "alphabetic";
  write(context, "1 m", left + 5, base - 6);
}
