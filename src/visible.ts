/**
 * Text of callers as people see it, in the page and in the terminal programs: characters that would be obeyed instead of
 * shown (controls, and those that change the direction of text) are shown as escapes, so that nothing looks like something
 * else. Joiners stay, because scripts and emoji need them.
 */

const OBEYED = /(?![\t\n\r])[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f]/gu
const UNSEEN = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** `safe\u202eevil`. Line breaks and tabs stay. */
export function visible(text: string): string {
  // Most texts have none, and are returned as they are.
  return text.search(OBEYED) === -1 ? text : text.replace(OBEYED, escapeOf)
}

/** Also escapes joiners and other characters that cannot be seen, but no line feeds. */
export function allVisible(text: string): string {
  return text.replace(UNSEEN, escapeOf)
}

function escapeOf(character: string): string {
  const units = Array.from({ length: character.length }, (_, at) => character.charCodeAt(at))
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')
}
