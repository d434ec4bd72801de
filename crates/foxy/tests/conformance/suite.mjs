// Serves and runs a cut of the public suite http-cache-tests for the conformance test beside it.
//   node suite.mjs serve FOLDER              prints the port of the suite's origin; ends with its standard input
//   node suite.mjs run FOLDER BASE [ID,ID…]  prints every check and its result as JSON
//   node suite.mjs vectors FOLDER            prints every check as data, one a line
// FOLDER holds the suite: the npm package, or a checkout of a newer cut.

import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import net from 'node:net'
import { pathToFileURL } from 'node:url'
import { vectors } from './vectors.mjs'

const AT_ONCE = 100

const [action, folder, base, ids] = process.argv.slice(2)
const newer = existsSync(`${folder}/test-engine`)
const engine = newer ? `${folder}/test-engine` : folder
const load = path => import(pathToFileURL(path))

async function serve () {
  const listen = net.Server.prototype.listen
  net.Server.prototype.listen = function (...where) {
    this.once('listening', () => console.log(`port ${this.address().port}`))
    return listen.apply(this, where)
  }
  Object.assign(process.env, { npm_config_protocol: 'http', npm_config_port: '0', npm_config_pidfile: '/dev/null' })
  process.stdin.on('end', () => process.exit()).resume()
  await load(`${engine}/server/server.mjs`)
}

async function choose () {
  const suites = (await load(`${folder}/tests/index.mjs`)).default
  if (existsSync(`${folder}/tests/surrogate-control.mjs`)) {
    suites.push((await load(`${folder}/tests/surrogate-control.mjs`)).default)
  }
  const wanted = ids && new Set(ids.split(','))
  return suites.map(suite => ({
    ...suite,
    tests: suite.tests.filter(test => test.browser_only !== true && (!wanted || wanted.has(test.id)))
  }))
}

async function run () {
  const chosen = await choose()
  const { runTests, getResults } = await load(`${engine}/client/runner.mjs`)
  if (newer) {
    await runTests(chosen, false, base, AT_ONCE)
  } else {
    const fetch = createRequire(pathToFileURL(`${folder}/package.json`))('node-fetch')
    await runTests(chosen, fetch, false, base, AT_ONCE)
  }
  const results = getResults()
  const checks = chosen.flatMap(suite => suite.tests).map(test => ({
    id: test.id,
    kind: test.kind ?? 'required',
    needs: test.depends_on ?? [],
    passed: results[test.id] === true,
    problem: results[test.id] === true ? '' : String(results[test.id])
  }))
  process.stdout.write(JSON.stringify(checks))
}

async function print () {
  const lines = (await vectors(await choose(), engine)).map(vector => JSON.stringify(vector))
  process.stdout.write(lines.join('\n'))
}

await { serve, run, vectors: print }[action]()
