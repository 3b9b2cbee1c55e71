// Whether a mail's HTML is HTML, and which parts of it real mail programs do not know.
//
// Usage: mail_check.mjs FOLDER FILE CLIENT…    FOLDER holds node_modules; a CLIENT is one of caniemail.com's, such as gmail.ios
//
// Prints JSON: `html`, what html-validate finds fault with, a line each; and `unknown`, by feature the clients that have no support for it at all, by caniemail.com's data.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const [folder, file, ...clients] = process.argv.slice(2)
// The packages do not lie beside this file.
const require = createRequire(`${folder}/`)
const { HtmlValidate, StaticConfigLoader } = require('html-validate')
const { caniemail } = await import(pathToFileURL(join(folder, 'node_modules/caniemail/dist/index.js')))

const html = readFileSync(file, 'utf8')
const loader = new StaticConfigLoader({
  root: true,
  extends: ['html-validate:recommended'],
  rules: {
    // Mail programs drop style sheets, and lay tables out by the attributes of HTML 4.
    'no-inline-style': 'off',
    'no-deprecated-attr': 'off'
  }
})
const report = await new HtmlValidate(loader).validateString(html)
const found = report.results.flatMap(({ messages }) => messages)

const unknown = {}
for (const client of clients) {
  // Throws where nobody has tried a feature in this client: then it is not known, and none to name here.
  for (const issues of caniemail({ clients: [client], html }).issues.errors.values()) {
    for (const { title } of issues) {
      unknown[title] = [...new Set([...(unknown[title] ?? []), client])]
    }
  }
}
console.log(JSON.stringify({ html: found.map(({ line, ruleId, message }) => `${line}: ${ruleId}: ${message}`), unknown }))
