// The server's API. A token is kept for this tab only (sessionStorage), and is sent to nobody but the server of this page.

const KEY = "holdfast-token";

export class Refused extends Error {
  constructor(status, error) {
    super(error?.text || `HTTP ${status}`);
    this.status = status;
    this.code = error?.code ?? null;
  }
}

export function token() {
  return sessionStorage.getItem(KEY);
}

export function setToken(value) {
  if (value) sessionStorage.setItem(KEY, value);
  else sessionStorage.removeItem(KEY);
}

function headers(more) {
  const secret = token();
  return secret ? { ...more, Authorization: `Bearer ${secret}` } : { ...more };
}

async function open(path, options) {
  const reply = await fetch(path, { cache: "no-store", redirect: "error", ...options });
  if (reply.ok) return reply;
  const body = await reply.json().catch(() => null);
  throw new Refused(reply.status, body?.error);
}

// An object, or throws: Refused with the server's sentence, TypeError if the server is not there.
export async function get(path, signal) {
  return (await open(path, { headers: headers({ Accept: "application/json" }), signal })).json();
}

export async function post(path, body) {
  const reply = await open(path, {
    method: "POST",
    headers: headers({ "Content-Type": "application/json" }),
    body: JSON.stringify(body),
  });
  const text = await reply.text();
  return text ? JSON.parse(text) : {};
}

// One block of a stream of server-sent events: "event: x\ndata: ...".
function parse(block) {
  const event = { event: "message", data: "", id: null };
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    if (colon === 0) continue;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") event.data += (event.data ? "\n" : "") + value;
    else if (field === "event" || field === "id") event[field] = value;
  }
  return event;
}

// Reads events until the stream ends, fails or `signal` stops it. EventSource would do this, but sends no token.
export async function follow(path, { signal, lastId, onEvent, onAlive }) {
  const more = { Accept: "text/event-stream" };
  if (lastId) more["Last-Event-ID"] = lastId;
  const reply = await open(path, { headers: headers(more), signal });
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    onAlive?.();
    const blocks = (rest + value.replace(/\r\n?/g, "\n")).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const event = parse(block);
      if (event.data) await onEvent(event);
    }
  }
}
