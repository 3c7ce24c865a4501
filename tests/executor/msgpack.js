// As much msgpack as plain arguments and results need: no dates, no sets, no integers above 53 bits.
'use strict';

function unpack(data) {
  let at = 0;
  const number = (bytes, how) => { const value = data[how](at); at += bytes; return value; };
  const text = (size) => { at += size; return data.toString('utf8', at - size, at); };
  const list = (size) => Array.from({ length: size }, one);
  const map = (size) => Object.fromEntries(Array.from({ length: size }, () => [one(), one()]));
  function one() {
    const code = data[at++];
    if (code < 0x80) return code;
    if (code < 0x90) return map(code & 15);
    if (code < 0xa0) return list(code & 15);
    if (code < 0xc0) return text(code & 31);
    if (code >= 0xe0) return code - 256;
    switch (code) {
      case 0xc0: return null;
      case 0xc2: return false;
      case 0xc3: return true;
      case 0xca: return number(4, 'readFloatBE');
      case 0xcb: return number(8, 'readDoubleBE');
      case 0xcc: return number(1, 'readUInt8');
      case 0xcd: return number(2, 'readUInt16BE');
      case 0xce: return number(4, 'readUInt32BE');
      case 0xcf: return Number(number(8, 'readBigUInt64BE'));
      case 0xd0: return number(1, 'readInt8');
      case 0xd1: return number(2, 'readInt16BE');
      case 0xd2: return number(4, 'readInt32BE');
      case 0xd3: return Number(number(8, 'readBigInt64BE'));
      case 0xd9: return text(number(1, 'readUInt8'));
      case 0xda: return text(number(2, 'readUInt16BE'));
      case 0xdc: return list(number(2, 'readUInt16BE'));
      case 0xde: return map(number(2, 'readUInt16BE'));
      default: throw new Error(`a value of the kind 0x${code.toString(16)} is not read here`);
    }
  }
  return one();
}

function sized(code, size, body) {
  const head = Buffer.alloc(3);
  head[0] = code;
  head.writeUInt16BE(size, 1);
  return Buffer.concat([head, ...body]);
}

function pack(value) {
  if (value === null || value === undefined) return Buffer.from([0xc0]);
  if (typeof value === 'boolean') return Buffer.from([value ? 0xc3 : 0xc2]);
  if (Number.isInteger(value) && Math.abs(value) < 2 ** 53) {
    const whole = Buffer.alloc(9, 0xd3);
    whole.writeBigInt64BE(BigInt(value), 1);
    return whole;
  }
  if (typeof value === 'number') {
    const real = Buffer.alloc(9, 0xcb);
    real.writeDoubleBE(value, 1);
    return real;
  }
  if (typeof value === 'string') return sized(0xda, Buffer.byteLength(value), [Buffer.from(value)]);
  if (Array.isArray(value)) return sized(0xdc, value.length, value.map(pack));
  const pairs = Object.entries(value);
  return sized(0xde, pairs.length, pairs.flat().map(pack));
}

module.exports = { pack, unpack };
