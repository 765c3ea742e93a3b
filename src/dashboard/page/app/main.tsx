import { render } from 'preact'
import { applyTheme, showAllText } from '../context/browser.ts'
import { App } from './app.tsx'

applyTheme()
showAllText()
render(<App />, document.body)
