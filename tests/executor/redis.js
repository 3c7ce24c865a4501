// A plain Redis client: one connection, replies as Buffer, number, array, null or Error.
'use strict';
const net = require('node:net');

function connect(port) {
  const socket = net.connect(port, '127.0.0.1').setNoDelay();
  const waiting = [];
  let data = Buffer.alloc(0);
  socket.on('data', (more) => {
    data = Buffer.concat([data, more]);
    for (let found; waiting.length && (found = read(data, 0)); ) {
      data = data.subarray(found.next);
      const { resolve, reject } = waiting.shift();
      found.value instanceof Error ? reject(found.value) : resolve(found.value);
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
  const end = data.indexOf('\r\n', at);
  if (end < 0) return null;
  const kind = String.fromCharCode(data[at]), text = data.toString('utf8', at + 1, end), size = Number(text);
  let next = end + 2;
  if (kind === '-') return { value: new Error(text), next };
  if (kind === ':') return { value: size, next };
  if (kind === '+') return { value: Buffer.from(text), next };
  if (size < 0) return { value: null, next };
  if (kind === '$') return data.length < next + size + 2 ? null : { value: data.subarray(next, next + size), next: next + size + 2 };
  const value = [];
  for (let i = 0; i < size; i++) {
    const each = read(data, next);
    if (!each) return null;
    value.push(each.value);
    next = each.next;
  }
  return { value, next };
}

module.exports = { connect };
