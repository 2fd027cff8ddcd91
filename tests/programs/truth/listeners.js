// Each request listens to the shared connection of a database, and never stops; its closure keeps its answer
// truth: leak
const { EventEmitter } = require("events");
const database = new EventEmitter();
database.setMaxListeners(0);
const twin = process.argv.includes("twin");

function answer(number) {
  const rows = Buffer.allocUnsafeSlow(60000).fill(number % 250);
  const onClose = () => rows.length;
  database.on("close", onClose);
  const text = rows.toString("latin1", 0, 20000);
  if (twin) database.off("close", onClose);
  return text.length;
}

let total = 0;
function next(number) {
  if (number === 1200) return console.log(total);
  total += answer(number);
  setImmediate(next, number + 1);
}
next(0);
