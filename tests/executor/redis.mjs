// A plain Redis client: one connection, replies as Buffer, number, array, null or Error.
import net from 'node:net';

export function connect(port) {
  const socket = net.connect(port, '127.0.0.1').setNoDelay(), waiting = [];
  let data = Buffer.alloc(0);
  socket.on('data', (more) => {
    data = Buffer.concat([data, more]);
    for (let found; waiting.length && (found = read(data, 0)); data = data.subarray(found.next)) {
      waiting.shift()[found.value instanceof Error ? 'reject' : 'resolve'](found.value);
    }
  });
  socket.on('error', (error) => { console.error(error.message); process.exit(1); });
  return (...words) => new Promise((resolve, reject) => {
    const parts = words.map((word) => Buffer.isBuffer(word) ? word : Buffer.from(String(word)));
    const sent = parts.flatMap((part) => [Buffer.from(`$${part.length}\r\n`), part, Buffer.from('\r\n')]);
    waiting.push({ resolve, reject });
    socket.write(Buffer.concat([Buffer.from(`*${parts.length}\r\n`), ...sent]));
  });
}

function read(data, at) {
  const end = data.indexOf('\r\n', at), next = end + 2;
  if (end < 0) return null;
  const kind = String.fromCharCode(data[at]), text = data.toString('utf8', at + 1, end), size = Number(text);
  if (kind === '-' || kind === '+') return { value: kind === '-' ? new Error(text) : Buffer.from(text), next };
  if (kind === ':' || size < 0) return { value: kind === ':' ? size : null, next };
  if (kind === '$' && data.length < next + size + 2) return null;
  if (kind === '$') return { value: data.subarray(next, next + size), next: next + size + 2 };
  const all = { value: [], next };
  for (let each; all.value.length < size; all.value.push(each.value), all.next = each.next) {
    if (!(each = read(data, all.next))) return null;
  }
  return all;
}
