import { render } from 'preact'
import { applyTheme } from '../context/theme.ts'
import { showAllText } from '../context/visible-text.ts'
import { App } from './app.tsx'

applyTheme()
showAllText()
render(<App />, document.body)
