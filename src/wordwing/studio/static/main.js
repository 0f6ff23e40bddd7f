/** The page begins: every button gets its meaning. */

import { byId } from "./dom.js";
import { Studio } from "./studio.js";
import { initTheme } from "./theme.js";

initTheme();
const studio = new Studio();

byId("instruct").addEventListener("submit", (event) => {
  event.preventDefault();
  studio.fly(false);
});
byId("text").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.isComposing) return;
  event.preventDefault();
  studio.fly((event.ctrlKey || event.metaKey) && studio.phase === "ended");
});
byId("then").addEventListener("click", () => studio.fly(true));
for (const key of /** @type {("pause" | "step" | "stop" | "reset")[]} */ (["pause", "step", "stop", "reset"])) {
  byId(key).addEventListener("click", () => studio.press(key));
}
byId("speed").addEventListener("change", ({ target }) => {
  studio.speed(Number(/** @type {HTMLSelectElement} */ (target).value));
});
byId("layers").addEventListener("input", () => studio.draw());
byId("open").addEventListener("click", () => byId("file").click());
byId("file").addEventListener("change", ({ target }) => {
  const input = /** @type {HTMLInputElement} */ (target);
  const [file] = input.files ?? [];
  input.value = "";
  if (file) studio.openFile(file);
});
byId("save").addEventListener("click", () => studio.saveLayout());
byId("notice-close").addEventListener("click", () => {
  byId("notice").hidden = true;
  byId("text").focus();
});

// On a phone the world comes before the switches for what is laid over it.
const narrow = matchMedia("(max-width: 720px)");
const arrange = () => byId("lanes")[narrow.matches ? "after" : "before"](byId("layers"));
narrow.addEventListener("change", arrange);
arrange();

addEventListener("hashchange", () => studio.openLink());
studio.open();
