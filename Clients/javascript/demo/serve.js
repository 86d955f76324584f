// Serves the demo page, and starts a broker for it.
//
//   node Clients/javascript/demo/serve.js [--sluiced PROGRAM] [--port PORT] [--broker ws://HOST:PORT]
//
// With --broker it starts no broker. Ctrl-C stops both.

import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const { values } = parseArgs({
  options: {
    sluiced: { type: "string", default: "sluiced" },
    port: { type: "string", default: "8080" },
    host: { type: "string", default: "127.0.0.1" },
    broker: { type: "string" },
  },
});
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8" };
const root = new URL("../", import.meta.url);

let broker;
if (values.broker === undefined) {
  const options = ["--listen", "ws://127.0.0.1:7480", "--origins", `http://127.0.0.1:${values.port}`, "--admin", "off"];
  broker = spawn(values.sluiced, options, { stdio: "inherit" });
  broker.once("error", (error) => {
    console.error(`serve: can't start ${values.sluiced}: ${error.message}; name the program with --sluiced`);
    process.exit(1);
  });
  broker.once("exit", (code) => process.exit(code ?? 1));
}

const server = createServer(async (request, response) => {
  const { pathname } = new URL(request.url, "http://localhost");
  const file = pathname === "/" ? "demo/index.html" : pathname.slice(1);
  // Only the page and the client's sources are served.
  if (!/^(demo\/index\.html|src\/[\w-]+\.js)$/.test(file)) return void response.writeHead(404).end();
  try {
    const content = await readFile(fileURLToPath(new URL(file, root)));
    response.writeHead(200, { "content-type": TYPES[extname(file)] }).end(content);
  } catch {
    response.writeHead(404).end();
  }
});
server.listen(Number(values.port), values.host, () => {
  const query = values.broker === undefined ? "" : `?broker=${encodeURIComponent(values.broker)}`;
  console.log(`The demo is at http://${values.host}:${values.port}/${query}`);
});
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, () => {
    broker?.removeAllListeners("exit");
    broker?.kill("SIGTERM");
    server.close();
    server.closeAllConnections();
  });
}
