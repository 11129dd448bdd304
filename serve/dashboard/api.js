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

// An object, or throws: Refused with the server's sentence, something else if the server is not there, or is frozen.
export async function get(path, patience_ms = 8000) {
  const signal = AbortSignal.timeout(patience_ms);
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

// Server-sent events out of pieces of text. A line may come in many pieces, and be long: each piece is looked at once.
class EventReader {
  constructor() {
    this.pieces = []; // of the line that is not over
    this.event = {};
  }

  // The events that this piece completes: {event, data, id}.
  *read(piece) {
    const [first, ...rest] = piece.split("\n");
    this.pieces.push(first);
    for (const next of rest) {
      const line = this.pieces.join("").replace(/\r$/, "");
      this.pieces = [next];
      if (line !== "") this.field(line);
      else if (this.event.data !== undefined) yield this.event;
      if (line === "") this.event = {};
    }
  }

  field(line) {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data" && this.event.data !== undefined) this.event.data += `\n${value}`;
    else if (name !== "") this.event[name] = value;
  }
}

// Reads events until the stream ends, fails or `signal` stops it. EventSource would do this, but sends no token.
export async function follow(path, { signal, lastId, onEvent, onAlive }) {
  const more = { Accept: "text/event-stream" };
  if (lastId) more["Last-Event-ID"] = lastId;
  const reply = await open(path, { headers: headers(more), signal });
  const pieces = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  const reader = new EventReader();
  for (;;) {
    const { done, value } = await pieces.read();
    if (done) return;
    onAlive();
    for (const event of reader.read(value)) await onEvent(event);
  }
}
