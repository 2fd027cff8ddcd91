// growing FORM in JavaScript.
const form = process.argv[2] || 'fill', list = [], table = new Map(), begin = Date.now();
let units = 0, held = 0;
const pause = new Int32Array(new SharedArrayBuffer(4));
function work() { const parts = []; for (let k = 0; k < 10; k++) parts.push(Buffer.alloc(30000 + 8000 * k)); Atomics.wait(pause, 0, 0, 8); units++; return parts.length; }
function keep() { list.push(Buffer.alloc(100000)); held += 100000; }
function insert(from, count) { for (let k = from; k < from + count; k++) table.set('key' + k, { k, text: 'value ' + k }); }
if (form === 'fill') for (let k = 0; k < 700000; k++) list.push({ k, text: 'line ' + k });
if (form === 'works') for (let k = 0; k < 600; k++) keep();
if (form === 'map') insert(0, 400000);
if (form !== 'fill' && form !== 'map')
    for (let k = 0; k < 600; k++) {
        work();
        if (form === 'keeps' || (form === 'warmup' && k < 150)) keep();
        if (form === 'cache') insert(1000 * k, 800);
    }
console.log(`ACCOUNT {"kept_bytes": ${held}, "units": ${units}, "seconds": ${(Date.now() - begin) / 1000}}`);
