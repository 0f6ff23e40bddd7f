/** Okabe and Ito's palette, which colour-blind people can tell apart; the same as in all images of wordwing. */

export const FLOWN = "rgb(0 114 178)";
export const VERMILLION = "rgb(213 94 0)";
export const BLUISH_GREEN = "rgb(0 158 115)";
export const INK = "rgb(32 32 32)";
export const WHITE = "rgb(255 255 255)";

/** The colours of d^p and d^g, bytes. */
export const PASS = [86, 180, 233];
export const STOP = [240, 228, 66];

/** Cells that were looked at, cells without features, outside the arena, and at its edge, bytes. */
export const SEEN = [156, 76, 122];
export const UNOBSERVED = [190, 190, 186];
export const OUTSIDE = [232, 232, 229];
export const EDGE = [40, 40, 40];
