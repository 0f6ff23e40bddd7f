/** The page begins: every button gets its meaning. */

import { byId } from "./dom.js";
import { initCopy } from "./link.js";
import { Rating } from "./rating.js";
import { initTheme } from "./theme.js";

initTheme();
initCopy();
const rating = new Rating();

byId("begin").addEventListener("click", () => rating.begin());
byId("again").addEventListener("click", () => rating.goOn());
byId("item").addEventListener("submit", (event) => {
  event.preventDefault();
  rating.save();
});
byId("back").addEventListener("click", () => rating.back());
byId("review-back").addEventListener("click", () => rating.back());
byId("finish").addEventListener("click", () => rating.finish());
addEventListener("hashchange", () => location.reload());
rating.open();
