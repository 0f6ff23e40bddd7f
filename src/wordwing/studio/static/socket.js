/** The connection to the studio: JSON both ways, and decisions as binary messages. */

/**
 * @typedef {object} Frame One decision, with the images and maps that came with it.
 * @property {number} lane
 * @property {number} step
 * @property {number} time Seconds since the start of this instruction.
 * @property {number[]} pose x, y, z, roll, pitch, yaw; metres and radians, world frame.
 * @property {[number, number] | null} setpoint Forward m/s, yaw rate rad/s.
 * @property {number | null} stop Probability of STOP.
 * @property {boolean} stopped
 * @property {[number, number] | null} unobserved p_oob of d^p and of d^g.
 * @property {[number, number] | null} goal
 * @property {boolean} settling
 * @property {[number, number, number]} frame The start frame in the world: x, y, yaw.
 * @property {[number, number]} [peaks] Largest cell of d^p and d^g.
 * @property {Record<string, Raster>} images
 */

/** @typedef {{shape: number[], data: Uint8Array}} Raster */

/**
 * Read a binary message.
 * @param {ArrayBuffer} message uint32 length of the header, header, arrays one behind the other.
 * @returns {Frame}
 */
export function decode(message) {
  const length = new DataView(message).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(message, 4, length)));
  /** @type {Record<string, Raster>} */
  const images = {};
  let at = 4 + length;
  for (const { name, shape, type } of header.arrays) {
    if (type !== "uint8") throw new Error(`an array of ${type}`);
    const count = shape.reduce((/** @type {number} */ a, /** @type {number} */ b) => a * b, 1);
    images[name] = { shape, data: new Uint8Array(message, at, count) };
    at += count;
  }
  delete header.arrays;
  return { ...header, images };
}

/** Dispatches "message" (detail: the parsed JSON), "frame" (detail: Frame) and "lost". */
export class Connection extends EventTarget {
  /** @type {WebSocket | null} */
  #socket = null;

  get open() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  connect() {
    this.#socket?.close();
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(`${scheme}//${location.host}/ws`);
    socket.binaryType = "arraybuffer";
    this.#socket = socket;
    socket.addEventListener("open", () => this.send({ type: "hello", version: 1 }));
    socket.addEventListener("message", ({ data }) => {
      if (socket !== this.#socket) return;
      if (typeof data === "string") this.#tell("message", JSON.parse(data));
      else this.#tell("frame", decode(data));
    });
    socket.addEventListener("close", () => {
      if (socket !== this.#socket) return;
      this.#socket = null;
      this.#tell("lost");
    });
  }

  /**
   * @param {Record<string, unknown>} message
   * @returns {boolean} Whether there was somebody to send it to.
   */
  send(message) {
    if (!this.open) return false;
    this.#socket?.send(JSON.stringify(message));
    return true;
  }

  /**
   * @param {string} type
   * @param {unknown} [detail]
   */
  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
