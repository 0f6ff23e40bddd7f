/** The page begins: every button gets its meaning. */

import { Collecting } from "./collecting.js";
import { byId } from "./dom.js";
import { initTheme } from "./theme.js";

initTheme();
const collecting = new Collecting();

/** @param {string} id @param {() => unknown} work */
function submits(id, work) {
  byId(id).addEventListener("submit", (event) => {
    event.preventDefault();
    work();
  });
}

submits("write", () => collecting.save());
submits("follow", () => collecting.lead());
byId("back").addEventListener("click", () => collecting.back());
byId("send").addEventListener("click", () => collecting.send());
byId("look").addEventListener("click", () => collecting.look());
collecting.open();
