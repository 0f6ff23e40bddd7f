/** The page begins: every button gets its meaning. */

import { byId } from "./dom.js";
import { Rating } from "./rating.js";
import { initTheme } from "./theme.js";

initTheme();
const rating = new Rating();

byId("item").addEventListener("submit", (event) => {
  event.preventDefault();
  rating.save();
});
byId("back").addEventListener("click", () => rating.back());
byId("review-back").addEventListener("click", () => rating.back());
byId("finish").addEventListener("click", () => rating.finish());
rating.open();
