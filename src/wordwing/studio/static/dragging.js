/** Dragging landmarks, the drone and its heading in a view from above. */

import { HANDLE, toView, toWorld } from "./geometry.js";

/** @typedef {import("./things.js").Things} Things */
/** @typedef {import("./things.js").Which} Which */
/** @typedef {import("./world.js").WorldView} WorldView */

/** Pixels around a mark in which it is met, at least: half of a finger. */
const REACH = 18;

/** Pixels that a pointer must move before it drags. */
const SLACK = 4;

/** @typedef {{which: Which, turning: boolean, right: number, down: number, moved: boolean, dx: number, dy: number}} Drag */

/**
 * Let a view be edited.
 * @param {WorldView} view
 * @param {Things} things
 */
export function makeDraggable(view, things) {
  const { canvas } = view;
  things.listen(canvas);
  /** @type {Drag | null} */
  let drag = null;

  /** @param {number} right @param {number} down @returns {{which: Which, turning: boolean} | null} */
  const meet = (right, down) => {
    if (!things.enabled || !things.place || !view.scene) return null;
    const { size } = view;
    const { extent } = view.scene;
    const away = (/** @type {number} */ x, /** @type {number} */ y) => {
      const [a, b] = toView(x, y, size, extent);
      return Math.hypot(a - right, b - down);
    };
    const { x, y, yaw } = view.drone;
    const handle = !view.turnable ? Infinity : away(x + HANDLE * Math.cos(yaw), y + HANDLE * Math.sin(yaw));
    const body = away(x, y);
    if (Math.min(handle, body) <= REACH) return { which: "drone", turning: handle < body };
    /** @type {{which: Which, turning: boolean} | null} */
    let met = null;
    let nearest = Infinity;
    things.place.layout.landmarks.forEach((landmark, which) => {
      const distance = away(landmark.x, landmark.y);
      const reach = Math.max(REACH, (things.radius(landmark.name) * size) / extent);
      if (distance <= reach && distance < nearest) [met, nearest] = [{ which, turning: false }, distance];
    });
    return met;
  };

  /** @param {PointerEvent | Touch} event @returns {[number, number]} */
  const point = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  // A finger on a landmark drags it; anywhere else it scrolls the page.
  canvas.addEventListener(
    "touchstart",
    (event) => {
      if (event.touches.length === 1 && meet(...point(event.touches[0]))) event.preventDefault();
    },
    { passive: false },
  );

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !event.isPrimary) return;
    const [right, down] = point(event);
    const met = meet(right, down);
    things.choose(met ? met.which : null);
    if (event.pointerType === "mouse") canvas.focus({ preventScroll: true }); // so that arrow keys follow
    if (!met || !view.scene) return;
    const origin = met.which === "drone" ? view.drone : things.at(met.which);
    const [x, y] = toWorld(right, down, view.size, view.scene.extent);
    drag = { ...met, right, down, moved: false, dx: origin.x - x, dy: origin.y - y };
    canvas.setPointerCapture(event.pointerId);
  });

  canvas.addEventListener("pointermove", (event) => {
    const [right, down] = point(event);
    if (!drag || !view.scene) {
      canvas.style.cursor = meet(right, down) ? "grab" : "default";
      return;
    }
    if (!drag.moved && Math.hypot(right - drag.right, down - drag.down) < SLACK) return;
    const first = !drag.moved;
    drag.moved = true;
    canvas.style.cursor = "grabbing";
    const [x, y] = toWorld(right, down, view.size, view.scene.extent);
    const drone = view.drone;
    if (first && drag.which === "drone") things.put("drone", drone, "later"); // after a flight it is not at its start
    if (drag.turning) things.put("drone", { yaw: Math.atan2(y - drone.y, x - drone.x) }, "later");
    else things.put(drag.which, { x: x + drag.dx, y: y + drag.dy }, "later");
  });

  const drop = () => {
    if (drag?.moved) things.flush();
    drag = null;
    canvas.style.cursor = "default";
  };
  canvas.addEventListener("pointerup", drop);
  canvas.addEventListener("pointercancel", drop);
}
