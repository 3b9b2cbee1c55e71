// Renders templates by Go's own engine, compiled to WebAssembly: what Helm renders a chart by, without the functions that Helm adds.
//
// Usage: go_template.mjs FOLDER < REQUEST    FOLDER holds node_modules
//
// Reads {"templates": [text, …], "values": {…}} and prints a JSON list of what they come to.

import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

// The packages do not lie beside this file.
const package_ = pathToFileURL(`${process.argv[2]}/node_modules/@evertdespiegeleer/go-template/dist/main.js`)
const { parse } = await import(package_)

const { templates, values } = JSON.parse(readFileSync(0, 'utf8'))
const rendered = []
for (const template of templates) {
  rendered.push(await parse(template, values))
}
// The engine goes on waiting for templates.
process.stdout.write(JSON.stringify(rendered), () => process.exit(0))
