// As much msgpack as plain arguments and results need: no dates, no sets, no bytes, no integers above 53 bits.
const NUMBERS = 'FloatBE DoubleBE UInt8 UInt16BE UInt32BE BigUInt64BE Int8 Int16BE Int32BE BigInt64BE'.split(' ');
const SIZES = [4, 8, 1, 2, 4, 8, 1, 2, 4, 8]; // of the kinds from 0xca on

export function unpack(data) {
  let at = 0;
  const number = (n) => { at += SIZES[n]; return Number(data[`read${NUMBERS[n]}`](at - SIZES[n])); };
  const text = (size) => { at += size; return data.toString('utf8', at - size, at); };
  const list = (size) => Array.from({ length: size }, one);
  const map = (size) => Object.fromEntries(Array.from({ length: size }, () => [one(), one()]));
  function one() {
    const kind = data[at++];
    if (kind < 0x80) return kind;
    if (kind < 0x90) return map(kind & 15);
    if (kind < 0xa0) return list(kind & 15);
    if (kind < 0xc0) return text(kind & 31);
    if (kind >= 0xe0) return kind - 256;
    if (kind <= 0xc3 && kind !== 0xc1) return kind === 0xc0 ? null : kind === 0xc3;
    if (kind >= 0xca && kind <= 0xd3) return number(kind - 0xca);
    if (kind >= 0xd9 && kind <= 0xdb) return text(number(kind - 0xd9 + 2)); // its size is an unsigned number
    if (kind >= 0xdc && kind <= 0xdd) return list(number(kind - 0xdc + 3));
    if (kind >= 0xde) return map(number(kind - 0xde + 3));
    throw new Error(`a value of the kind 0x${kind.toString(16)} is not read here`);
  }
  return one();
}

export function pack(value) {
  const sized = (kind, size, parts) =>
    Buffer.concat([Buffer.from([kind, size >>> 24, size >>> 16, size >>> 8, size]), ...parts]);
  if (value === null || typeof value === 'boolean') return Buffer.from([value === null ? 0xc0 : value ? 0xc3 : 0xc2]);
  if (typeof value === 'string') return sized(0xdb, Buffer.byteLength(value), [Buffer.from(value)]);
  if (Array.isArray(value)) return sized(0xdd, value.length, value.map(pack));
  if (typeof value === 'object') return sized(0xdf, Object.keys(value).length, Object.entries(value).flat().map(pack));
  const bytes = Buffer.alloc(9, Number.isSafeInteger(value) ? 0xd3 : 0xcb);
  if (bytes[0] === 0xd3) bytes.writeBigInt64BE(BigInt(value), 1); else bytes.writeDoubleBE(value, 1);
  return bytes;
}
