// Uses the TypeScript client on a real server; test_typescript.py starts both and reads the JSON line that this prints.
const { Ricordo, RicordoError } = await import(process.env.CLIENT);
const { ROUTES } = await import(process.env.CLIENT.replace("index.js", "routes.js"));

const memory = new Ricordo({ url: `${process.env.RICORDO_URL}/`, token: process.env.RICORDO_TOKEN });
const failed = (call) => call.then(() => null, (error) => error);
const told = {};

const stop = new AbortController();
const following = memory.changes({ after: 0 }, { signal: stop.signal });
const first = following.next(); // waits until something is stored
const fact = await memory.remember({ content: "Sarah is allergic to peanuts", about: ["Sarah"] });
told.change = [(await first).value.seq > 0, fact.id];
stop.abort();
told.ended = (await following.next()).done;

told.found = (await memory.search({ text: "what must Sarah not eat?" })).hits.map((hit) => hit.content);
told.people = (await memory.people()).map((entity) => entity.name);
await memory.import("- Ünïcode 🌊: my boat is called Marlin\n", { format: "markdown", dry_run: undefined });
told.boat = (await memory.search({ text: "what is my boat called?" })).hits[0].content;

const missing = await failed(memory.get({ id: "no-such-memory" }));
told.missing = [missing instanceof RicordoError, missing.name, missing.code, missing.status, missing.message.length > 0];
told.invalid = (await failed(memory.search({ text: "x", limit: 0 }))).code;
told.denied = (await failed(new Ricordo({ url: process.env.RICORDO_URL, token: "wrong" }).stats())).status;
const strange = new Ricordo({ token: "", fetch: async () => new Response("<html>", { status: 502 }) });
told.strange = [(await failed(strange.stats())).code, (await failed(strange.stats())).status];
const cancelled = new AbortController();
cancelled.abort();
told.cancelled = (await failed(memory.stats({}, { signal: cancelled.signal }))).name;
told.methods = Object.keys(ROUTES).filter((name) => typeof memory[name] !== "function");

await memory.forget({ id: fact.id });
told.after = (await memory.search({ text: "what must Sarah not eat?" })).hits.map((hit) => hit.content);
const chat = '{"speaker": "Ann", "text": "Ahoy"}\n{"speaker": "Annie", "text": "Good wind"}\n';
await memory.import(chat, { me: ["Ann", "Annie"] });
told.speakers = (await memory.list({ type: "episodic" })).nodes.map((node) => node.speaker);
console.log(JSON.stringify(told));
