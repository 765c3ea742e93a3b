import { computed, signal } from '@preact/signals'

export type Theme = 'system' | 'light' | 'dark'

const STORED = 'theme'
const ORDER: readonly Theme[] = ['system', 'light', 'dark']

const system = globalThis.matchMedia?.('(prefers-color-scheme: dark)')
const isSystemDark = signal(system?.matches ?? false)
system?.addEventListener('change', ({ matches }) => {
  isSystemDark.value = matches
})

export const theme = signal<Theme>(ORDER.find((name) => name === globalThis.localStorage?.getItem(STORED)) ?? 'system')
export const isDark = computed(() => (theme.value === 'system' ? isSystemDark.value : theme.value === 'dark'))

/** Applies the stored choice to the page. */
export function applyTheme(): void {
  document.documentElement.dataset.theme = theme.peek()
}

/** Switches to the next theme and stores the choice. */
export function nextTheme(): void {
  theme.value = ORDER[(ORDER.indexOf(theme.value) + 1) % ORDER.length] as Theme
  localStorage.setItem(STORED, theme.value)
  applyTheme()
}
