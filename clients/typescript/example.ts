/** Store a fact, search for it and correct it. `make typescript` checks the types, `make test` runs it. */

import { Ricordo, RicordoError, type Hit, type Node } from "./index.js";

declare const process: { env: Record<string, string | undefined> };

const memory = new Ricordo({ url: process.env.RICORDO_URL, token: process.env.RICORDO_TOKEN ?? "" });

const fact: Node = await memory.remember({ content: "Sarah is allergic to peanuts", about: ["Sarah"] });
const hits: Hit[] = (await memory.search({ text: "what must Sarah not eat?", limit: 3 })).hits;
const better = await memory.correct({ id: fact.id, content: "Sarah is allergic to hazelnuts" });

try {
  await memory.get({ id: "no-such-memory" });
} catch (error) {
  if (!(error instanceof RicordoError) || error.code !== "not_found") throw error;
}

console.log(`${hits[0]?.content} -> ${better.content}`);
