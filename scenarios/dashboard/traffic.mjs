// An origin, a running foxy in front of it, and clients that request objects of three hosts.

import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { Agent, createServer, request } from "node:http";
import { join } from "node:path";

const HOSTS = ["shop.example", "images.example", "packages.example"];
const OBJECTS = 4000;
const CLIENTS = 6;
const PAUSE = 2;
const SIZES = [400, 3000, 12000, 60000, 300000];

export async function startOrigin() {
  const server = createServer((asked, answer) => {
    const number = Number(asked.url.split("/").pop().split("?")[0]) || 0;
    if (asked.url.startsWith("/broken")) {
      answer.writeHead(503, { "Content-Type": "text/plain" });
      return answer.end("broken\n");
    }
    answer.writeHead(200, {
      "Content-Type": "application/octet-stream",
      "Cache-Control": number % 9 === 0 ? "max-age=2" : "max-age=3600",
      ETag: `"${number}"`,
      "Surrogate-Key": `group-${number % 10}`,
    });
    return answer.end(Buffer.alloc(SIZES[number % SIZES.length], number % 251));
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { port: server.address().port, close };
}

async function freePort() {
  const server = createServer();
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const { port } = server.address();
  await new Promise((closed) => server.close(closed));
  return port;
}

async function answers(port) {
  return new Promise((resolve) => {
    const asked = request({ host: "127.0.0.1", port, path: "/healthz" }, (answer) => {
      answer.resume();
      resolve(true);
    });
    asked.on("error", () => resolve(false));
    asked.end();
  });
}

// Starts foxy with its files in a folder. With a `token`, the admin server requires this word.
export async function startFoxy(program, folder, originPort, { token, scheme = "webcosm" } = {}) {
  const [proxy, admin] = [await freePort(), await freePort()];
  const store = join(folder, "cache");
  mkdirSync(store, { recursive: true });
  if (token) writeFileSync(join(folder, "token"), token, { mode: 0o600 });
  const file = join(folder, "foxy.toml");
  writeFileSync(file, `listen = "127.0.0.1:${proxy}"
admin = "127.0.0.1:${admin}"
store = ["cache"]
size = "128M"
scheme = "${scheme}"
memory = "8M"
access-log = "off"
${token ? 'admin-token-file = "token"' : ""}
allow-destination = ["127.0.0.0/8"]

[[rule]]
name = "no-secrets"
when = { path = "/secret/*" }
then = { access = "deny" }
${HOSTS.map((host) => `
[[origin]]
hosts = "${host}"
servers = ["http://127.0.0.1:${originPort}"]
`).join("")}`);
  const child = spawn(program, ["serve", "--config", file], {
    cwd: folder, stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  child.stdout.on("data", (text) => { said += text; });
  child.stderr.on("data", (text) => { said += text; });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  for (let tries = 0; !(await answers(admin)); tries += 1) {
    if (tries > 100) throw new Error(`foxy does not start: ${said}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const stop = () => {
    if (child.exitCode === null) child.kill("SIGTERM");
    return ended;
  };
  return { proxy, admin: `http://127.0.0.1:${admin}`, store, stop };
}

// Clients that request objects, some far more often than others.
export class Traffic {
  constructor(port) {
    this.port = port;
    this.agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
    this.answered = 0;
    this.isOn = false;
  }

  start() {
    this.isOn = true;
    for (let client = 0; client < CLIENTS; client += 1) this.run(client);
  }

  stop() {
    this.isOn = false;
    this.agent.destroy();
  }

  async run(client) {
    while (this.isOn) {
      await this.once(client);
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
  }

  once(client) {
    const number = Math.floor(OBJECTS ** Math.random());
    const host = HOSTS[number % 7 === 0 ? 2 : number % 2];
    const kind = Math.random();
    const path = kind < 0.004 ? "/broken/1" : kind < 0.008 ? "/secret/1" : `/item/${number}`;
    return new Promise((resolve) => {
      const asked = request({ host: "127.0.0.1", port: this.port, path, agent: this.agent,
        localAddress: `127.0.0.${client + 1}`, headers: { Host: host } }, (answer) => {
        answer.resume();
        answer.on("end", () => {
          this.answered += 1;
          resolve();
        });
        answer.on("error", resolve);
      });
      asked.on("error", resolve);
      asked.end();
    });
  }
}
