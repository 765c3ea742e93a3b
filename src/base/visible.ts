/**
 * How the page and the terminal programs show text of callers: control characters, and those that change the direction of
 * text, are shown as escapes, so that nothing looks like something else. Joiners stay, because scripts and emoji need them.
 */

const CONTROLS = /(?![\t\n\r])[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f]/gu
const INVISIBLE = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** `safe\u202eevil`. Line breaks and tabs stay. */
export function visible(text: string): string {
  // Most texts have none, and are returned as they are.
  return text.search(CONTROLS) === -1 ? text : text.replace(CONTROLS, escapeOf)
}

/** Also escapes joiners and other characters that cannot be seen, but not line feeds. */
export function allVisible(text: string): string {
  return text.replace(INVISIBLE, escapeOf)
}

function escapeOf(character: string): string {
  const units = Array.from({ length: character.length }, (_, at) => character.charCodeAt(at))
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')
}
