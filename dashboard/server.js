// Asks the admin server for data, and sends it purges.

const KEY = "foxy-token";
let token = sessionStorage.getItem(KEY);

// The server refused a request. `status` is the status of the answer, or 0 if there was no answer.
export class Refusal extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

export function setToken(word) {
  token = word;
  sessionStorage.setItem(KEY, word);
}

// Returns the JSON at `path`. A `body` makes the request a POST.
export async function ask(path, body) {
  const headers = { "Foxy-Dashboard": "1" };
  if (token) headers.Authorization = `Bearer ${token}`;
  const method = body === undefined ? "GET" : "POST";
  const content = body === undefined ? undefined : JSON.stringify(body);
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: content, cache: "no-store" });
  } catch {
    throw new Refusal(0, "foxy does not answer");
  }
  if (!answer.ok) throw new Refusal(answer.status, (await answer.text()).trim());
  return answer.json();
}
