/** A client of `ricordo serve`. It needs `fetch`, and nothing else: Node 18 or newer, Deno, Bun, browsers, workers. */

import { ROUTES } from "./routes.js";

const PATIENCE_MS = 1000; // how long to wait before a stream that ended is opened again

export class RicordoError extends Error {
  constructor({ code, message, hint }, status) {
    super(message);
    this.name = "RicordoError";
    this.code = code;
    this.hint = hint;
    this.status = status;
  }
}

export class Ricordo {
  #url;
  #token;
  #fetch;

  constructor({ url = "http://127.0.0.1:7411", token, fetch = globalThis.fetch }) {
    this.#url = url.replace(/\/+$/, "");
    this.#token = token;
    this.#fetch = fetch;
  }

  async call(path, parameters = {}, { signal } = {}) {
    const body = JSON.stringify(parameters);
    const response = await this.#send(path, { method: "POST", body, signal }, "application/json");
    return await response.json();
  }

  async import(file, parameters = {}, { signal } = {}) {
    const path = withQuery("/v1/import", parameters);
    const response = await this.#send(path, { method: "POST", body: file, signal }, "application/octet-stream");
    return await response.json();
  }

  async *changes({ after } = {}, { signal } = {}) {
    let last = after;
    while (!signal?.aborted) {
      try {
        const response = await this.#send(withQuery("/v1/changes", { after: last }), { signal });
        for await (const event of events(response.body)) {
          if (event.event !== "change") continue;
          last = Number(event.id);
          yield JSON.parse(event.data);
        }
        await new Promise((resolve) => setTimeout(resolve, PATIENCE_MS));
      } catch (error) {
        if (!signal?.aborted) throw error;
      }
    }
  }

  async #send(path, request, type) {
    const headers = { Authorization: `Bearer ${this.#token}` };
    if (type) headers["Content-Type"] = type;
    // Called without `this`: browsers refuse a `fetch` that is called as a method of another object.
    const fetch = this.#fetch;
    const response = await fetch(this.#url + path, { ...request, headers });
    if (!response.ok) throw await failure(response);
    return response;
  }
}

for (const [name, path] of Object.entries(ROUTES)) {
  Ricordo.prototype[name] = function (parameters, options) {
    return this.call(path, parameters, options);
  };
}

function withQuery(path, parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined);
  const pairs = given.flatMap(([name, value]) => [value].flat().map((each) => [name, String(each)]));
  return pairs.length ? `${path}?${new URLSearchParams(pairs)}` : path;
}

async function failure(response) {
  const text = await response.text();
  try {
    return new RicordoError(JSON.parse(text).error, response.status);
  } catch {
    const message = `the server answered ${response.status} without a Ricordo error`;
    return new RicordoError({ code: "error", message, hint: "check `url`" }, response.status);
  }
}

/** Yield the server-sent events of a body, as objects of their fields. */
async function* events(body) {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of chunks(body)) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n\n");
    rest = parts.pop();
    for (const part of parts) yield fields(part);
  }
}

async function* chunks(body) {
  const reader = body.getReader();
  try {
    for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) yield value;
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function fields(block) {
  const found = {};
  for (const line of block.split("\n")) {
    const [, name, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
    if (name) found[name] = name in found ? `${found[name]}\n${value}` : value;
  }
  return found;
}
