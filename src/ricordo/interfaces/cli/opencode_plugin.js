// Written by `ricordo install opencode`; `ricordo uninstall opencode` deletes it.
// The briefing of a session is read once. The log is taken in by a process of its own: nothing here waits for it.
import { execFile, spawn } from "node:child_process"

const COMMAND = "@COMMAND@"
const FIRST = "@FIRST@"
const COMMON = "@COMMON@"

const args = (event) => [...FIRST, "hook", "opencode", event, ...COMMON]

function ask(event, given) {
  return new Promise((done) => {
    const child = execFile(COMMAND, args(event), { timeout: 15000 }, (error, out) => done(error ? "" : String(out)))
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(given))
  })
}

function tell(event, given) {
  try {
    const child = spawn(COMMAND, args(event), { detached: true, stdio: ["pipe", "ignore", "ignore"] })
    child.on("error", () => {})
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(given))
    child.unref()
  } catch {}
}

export const Ricordo = async ({ directory }) => {
  const briefings = new Map()
  return {
    "experimental.chat.system.transform": async (input, output) => {
      const id = input?.sessionID ?? ""
      if (!briefings.has(id)) briefings.set(id, ask("session-start", { session_id: id, cwd: directory }))
      const text = await briefings.get(id)
      if (text) output.system.push(text)
    },
    event: async ({ event }) => {
      const id = event?.properties?.sessionID
      if (id && event.type === "session.idle") tell("session-end", { session_id: id, cwd: directory })
      if (id && event.type === "session.compacted") tell("compaction", { session_id: id, cwd: directory })
    },
  }
}
