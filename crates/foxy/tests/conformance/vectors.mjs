// The checks of a cut of http-cache-tests as data that needs neither its client nor its origin: what each request is,
// what the origin would answer, and what client and origin must have seen in the end. The meaning of each key is that
// of the suite's client/test.mjs and server/handle-test.mjs. Virtual time begins at START and passes in pauses only, so
// whatever the suite derives from the clock is a text here.

import { pathToFileURL } from 'node:url'

// In seconds since 1970. The suite's fixed dates, such as 2038 and 2050, lie ahead of it as they do of today.
const START = Date.UTC(2026, 0, 1) / 1000

// The suite's names are random and as long. Bodies are the name, unless a check says otherwise.
const NAME = '00000000-0000-4000-8000-000000000000'

// What utils.mjs of the suite's client waits for, in seconds.
const PAUSE = 3

const KNOWN = new Set(['check_body', 'disconnect', 'expected_interim_responses', 'expected_method',
  'expected_request_headers', 'expected_response_headers', 'expected_response_headers_missing',
  'expected_response_text', 'expected_status', 'expected_type', 'filename', 'interim_responses', 'magic_ims',
  'magic_locations', 'pause_after', 'query_arg', 'redirect', 'request_body', 'request_headers', 'request_method',
  'response_body', 'response_headers', 'response_pause', 'response_status', 'rfc850date', 'setup', 'setup_tests'])

export async function vectors (suites, engine) {
  const parts = ['lib/header-fixup', 'lib/utils', 'lib/defines', 'client/fetching']
  const suite = {}
  for (const part of parts) Object.assign(suite, await import(pathToFileURL(`${engine}/${part}.mjs`)))
  return suites.flatMap(({ tests }) => tests).map(test => vector(suite, test))
}

function vector (suite, test) {
  const steps = []
  let at = START
  for (const request of test.requests) {
    const unknown = Object.keys(request).filter(key => !KNOWN.has(key))
    if (unknown.length > 0) throw new Error(`${test.id}: nothing here knows what ${unknown} means`)
    if (request.magic_ims && test.requests[steps.length - 1].expected_type === 'cached') {
      throw new Error(`${test.id}: a date relative to a response from the cache`)
    }
    const file = 'filename' in request ? `/${request.filename}` : ''
    const query = 'query_arg' in request ? `?${request.query_arg}` : ''
    const path = `/test/${NAME}${file}${query}`
    const now = at + (request.response_pause ?? 0)
    steps.push({
      at,
      seconds: now - at,
      method: request.request_method ?? 'GET',
      path,
      fields: asked(suite, test, request, steps),
      answer: answer(suite, request, now, path, steps),
      expects: expectations(suite, request),
      interim: 'interim_responses' in request || 'expected_interim_responses' in request
    })
    at = now + (request.pause_after === true ? PAUSE : 0)
  }
  return { id: test.id, kind: test.kind ?? 'required', needs: test.depends_on ?? [], steps }
}

function asked (suite, test, request, steps) {
  const before = { 'server-now': steps.at(-1)?.answer.now }
  const { headers } = suite.init(steps.length, structuredClone({ ...request, id: test.id }), before)
  return headers.map(([name, value]) => [name, String(value)])
}

// What the suite's origin answers. Whether it is a confirmation depends on the conditions it is sent.
function answer (suite, request, seconds, path, steps) {
  const now = seconds * 1000
  const headers = { 'server-now': String(now), 'server-base-url': path }
  const resolved = header => suite.fixupHeader([...header], headers, request)
  const given = (request.response_headers ?? []).map(resolved)
  const lines = name => given.filter(header => header[0].toLowerCase() === name.toLowerCase())
  const fields = given.map(([name, value]) => [name, String(value)])
  const ours = { 'Content-Type': 'text/plain', Date: suite.httpDate(now, 0) }
  for (const name in ours) if (lines(name).length === 0) fields.push([name, ours[name]])
  fields.push(['Server-Now', String(now)], ['Client-Request-Count', String(steps.length + 1)])
  // Each field as the client must see it: the lines up to the last one that counts.
  const shown = {}
  given.forEach((header, index) => {
    if (header.length > 2 && header[2] !== true) return
    if (suite.skipResponseHeaders.has(header[0].toLowerCase())) return
    const until = given.slice(0, index + 1).filter(other => other[0].toLowerCase() === header[0].toLowerCase())
    shown[header[0]] = until.map(other => other[1]).join(', ')
  })
  const validated = request.expected_type?.endsWith('validated') === true
  const last = steps.at(-1)?.answer.fields ?? []
  const before = name => last.filter(([other]) => other.toLowerCase() === name).at(-1)?.[1]
  const conditions = { 'if-modified-since': 'last-modified', 'if-none-match': 'etag' }
  const validators = validated ? Object.entries(conditions).map(([name, field]) => [name, before(field)]) : []
  return {
    now,
    status: validated ? 999 : request.response_status?.[0] ?? 200,
    fields,
    body: request.response_body ?? NAME,
    disconnects: request.disconnect === true,
    confirms: validators.filter(([, value]) => value !== undefined),
    shown: Object.entries(shown)
  }
}

function expectations (suite, request) {
  const method = request.request_method ?? 'GET'
  const body = () => {
    if (request.check_body === false) return null
    if ('expected_response_text' in request) return { text: request.expected_response_text, always: true }
    if (request.response_body != null) return { text: request.response_body, always: true }
    return method === 'HEAD' ? null : { text: NAME, always: false }
  }
  const wanted = body()
  return {
    from: request.expected_type ?? 'any',
    status: 'expected_status' in request ? request.expected_status : request.response_status?.[0] ?? 200,
    fields: (request.expected_response_headers ?? []).map(header => expectation(suite, header)),
    // The suite looks for a value in what never has one, so a name with a value forbids nothing.
    missing: (request.expected_response_headers_missing ?? []).filter(header => typeof header === 'string'),
    body: wanted?.text == null ? null : wanted,
    sent: (request.expected_request_headers ?? []).map(header => typeof header === 'string' ? [header, null] : header),
    method: request.expected_method ?? null
  }
}

function expectation (suite, header) {
  if (typeof header === 'string') return { name: header, is: 'there' }
  const [name, value, other] = header
  if (header.length > 2) return value === '=' ? { name, is: 'same', as: other } : { name, is: 'above', as: other }
  const dated = suite.dateHeaders.has(name.toLowerCase()) && Number.isInteger(value)
  return dated ? { name, is: 'dated', as: value } : { name, is: 'text', as: String(value) }
}
