// The reference page: its theme, and Swagger UI with samples for our clients. It is loaded before everything else, so that
// a dark page is dark at once.

// The theme is stored under the same name as the dashboard's, so that both pages share it.
const STORED = 'theme'
const THEMES = ['system', 'light', 'dark']
const systemDark = matchMedia('(prefers-color-scheme: dark)')
const themeOf = () => THEMES.find((name) => name === localStorage.getItem(STORED)) ?? 'system'

function applyTheme() {
  const theme = themeOf()
  const isDark = theme === 'system' ? systemDark.matches : theme === 'dark'
  document.documentElement.classList.toggle('dark-mode', isDark)
  const button = document.querySelector('#theme')
  if (button !== null) button.textContent = `Theme: ${theme}`
}

function nextTheme() {
  localStorage.setItem(STORED, THEMES[(THEMES.indexOf(themeOf()) + 1) % THEMES.length])
  applyTheme()
}

// Stores the language that was chosen for samples.
const LANGUAGE = 'docs-language'

/** A plugin that shows the samples of an operation, from its `x-codeSamples`, before its parameters. */
function samplesPlugin() {
  return {
    wrapComponents: {
      parameters:
        (Parameters, { React }) =>
        (props) => {
          const [path, method] = props.pathMethod
          const operation = props.specSelectors.specJson().getIn(['paths', path, method, 'x-codeSamples'])
          return React.createElement(
            React.Fragment,
            null,
            operation && React.createElement(Samples, { React, samples: operation.toJS() }),
            React.createElement(Parameters, props),
          )
        },
    },
  }
}

function Samples({ React, samples }) {
  const { createElement, useState } = React
  const [chosen, choose] = useState(localStorage.getItem(LANGUAGE))
  const [note, setNote] = useState('Copy')
  const shown = samples.find(({ label }) => label === chosen) ?? samples[0]
  const { source } = shown
  const open = (label) => {
    localStorage.setItem(LANGUAGE, label)
    choose(label)
    setNote('Copy')
  }
  const copy = () =>
    (navigator.clipboard?.writeText(source) ?? Promise.reject()).then(
      () => setNote('Copied'),
      () => setNote('The browser refused'),
    )
  const tabs = samples.map(({ label }) =>
    createElement(
      'button',
      { key: label, type: 'button', 'aria-pressed': label === shown.label, onClick: () => open(label) },
      label,
    ),
  )
  const copyButton = createElement('button', { type: 'button', className: 'copy-sample', onClick: copy }, note)
  return createElement(
    'section',
    { className: 'samples', 'aria-label': 'Samples' },
    createElement('div', { className: 'samples-head' }, tabs, copyButton),
    createElement('pre', { tabIndex: 0, role: 'group', 'aria-label': `${shown.label} sample` }, source),
  )
}

/** Opens the operation that a link of the introduction names. Swagger UI would open a new tab. */
function openOperation(event) {
  const link = event.target.closest('.info a[href^="#/"]')
  if (link === null) return
  event.preventDefault()
  const [, tag, id] = link.hash.split('/')
  const operation = document.getElementById(`operations-${tag}-${id}`)
  if (!operation.classList.contains('is-open')) operation.querySelector('button').click()
  operation.scrollIntoView()
}

applyTheme()
systemDark.addEventListener('change', applyTheme)
addEventListener('storage', applyTheme)
addEventListener('click', openOperation)
addEventListener('DOMContentLoaded', () => {
  applyTheme()
  document.querySelector('#theme').addEventListener('click', nextTheme)
  // No `validatorUrl`, because Swagger's validator is a server on the internet.
  SwaggerUIBundle({
    url: '/docs/json',
    dom_id: '#reference',
    deepLinking: true,
    docExpansion: 'list',
    displayRequestDuration: true,
    persistAuthorization: true,
    validatorUrl: null,
    plugins: [samplesPlugin],
    // Samples name the address of a service on the same machine.
    responseInterceptor: (response) => {
      if (response.url.endsWith('/docs/json') && response.text !== undefined) {
        response.text = response.text.replaceAll('http://127.0.0.1:3000', location.origin)
      }
      return response
    },
  })
})
