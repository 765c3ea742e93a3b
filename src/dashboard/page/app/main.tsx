import { render } from 'preact'
import { App } from './app.tsx'
import { applyTheme } from './theme.ts'
import { showAllText } from './visible-text.ts'

applyTheme()
showAllText()
render(<App />, document.body)
