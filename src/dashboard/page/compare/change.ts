/** A difference below this share of the earlier value does not matter. */
const SAME_SHARE = 0.005

/**
 * How an amount has changed: `+1.2 s (+34%)`, `−300 ms (−12%)`, `same`; nothing if one is unknown.
 * @param format of an amount above 0
 */
export function changeText(a: number | null, b: number | null, format: (amount: number) => string): string {
  if (a === null || b === null) return ''
  const difference = b - a
  if (difference === 0 || Math.abs(difference) < SAME_SHARE * Math.abs(a)) return 'same'
  const sign = difference > 0 ? '+' : '−'
  const share = a > 0 ? ` (${sign}${percentText(Math.abs(difference) / a)})` : ''
  return `${sign}${format(Math.abs(difference))}${share}`
}

/** `34%`; `12×` from ten times on. */
function percentText(share: number): string {
  return share >= 10 ? `${Math.round(share)}×` : `${Math.round(share * 100)}%`
}

/** JSON with the line breaks of its texts, so that a difference is a line and not the whole text. */
export function withLines(json: string): string {
  return json.replaceAll(/\\(.)/g, (whole, escaped: string) => (escaped === 'n' ? '\n' : whole))
}
