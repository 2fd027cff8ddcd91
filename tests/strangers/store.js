// truth(keeps): leak - 80.0M; a map by key that nobody deletes from
// truth(ring): passes - 2.0M; the map has the last hundred
// pauses: 0 0.0005
// needs: node
const form = process.argv[2] || "keeps", pause = Number(process.env.PAUSE || 0) * 1000, store = new Map();
let id = 0;
function turn() {
  store.set(id, Buffer.alloc(20000, 1));
  const reply = Array.from({ length: 5 }, () => Buffer.alloc(20000, 2));
  if (form === "ring") store.delete(id - 100);
  if (++id < (form === "ring" ? 16000 : 4000) && reply) pause && id % 8 === 0 ? setTimeout(turn, 8 * pause) : setImmediate(turn);
}
turn();
