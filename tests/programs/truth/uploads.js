// A server in node that keeps the body of every upload in a map, for retries that never come
// truth: leak
const http = require("http");
const kept = new Map();
const forget = process.argv.includes("twin");

function store(id, parts) {
  const body = Buffer.allocUnsafeSlow(120000);
  Buffer.concat(parts).copy(body);
  kept.set(id, body);
}

const server = http.createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    store(request.url, parts);
    if (forget) kept.delete(request.url);
    response.end("ok");
  });
});

function upload(number) {
  if (number === 500) return server.close(() => process.exit(0));
  const request = http.request({ port: server.address().port, path: "/" + number, method: "POST", agent: false }, (response) => {
    response.resume();
    response.on("end", () => upload(number + 1));
  });
  request.end(Buffer.alloc(60000, number));
}

server.listen(0, () => upload(0));
