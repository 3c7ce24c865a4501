// An executor of taskq jobs in another language: no library of ours, a socket and the scripts as they are.
//   python -m taskq.scripts DIR && node executor.mjs PORT NAMESPACE QUEUE WORKER DIR
// lua/README.md, "Writing an executor", says what is done here and why.
import fs from 'node:fs';
import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { pack, unpack } from './msgpack.mjs';
import { connect } from './redis.mjs';

const [port, namespace, queue, name, folder] = process.argv.slice(2);
const worker = `${name}-${randomBytes(4).toString('hex')}`; // new at each start: numbers of claims begin at 1
const prefix = `${namespace}:{${queue}}:`, claiming = connect(port), said = connect(port); // the first one blocks
const LEASE_MS = 4000, OFFER_MS = 5000, AT_ONCE = 4, IDLE_S = 2, loaded = new Map(), running = new Map();

// A script: its KEYS are named in the line `keys.bind(...)`, the first of them is the prefix itself.
async function call(redis, script, ...args) {
  if (!loaded.has(script)) {
    const text = fs.readFileSync(`${folder}/${script}.lua`, 'utf8');
    const names = /^keys\.bind\(([^)]*)\)/m.exec(text)[1].match(/\w+/g);
    const keys = names.map((each) => prefix + (each === 'prefix' ? '' : each));
    loaded.set(script, { text, keys, sha: await redis('SCRIPT', 'LOAD', text) });
  }
  const { text, keys, sha } = loaded.get(script), rest = [keys.length, ...keys, ...args];
  return redis('EVALSHA', sha, ...rest).catch((error) => { // perhaps the server has forgotten it
    if (error.message.startsWith('NOSCRIPT')) return redis('EVAL', text, ...rest);
    throw error;
  });
}

const tasks = {
  add: async ([a, b]) => a + b,
  greet: async (_, { whom }) => `hello ${whom}`,
  slow: async ([ms], _, signal) => { await pause(ms, null, { signal }); return 'slept'; },
  boom: async ([text]) => { throw new Error(text); },
};

// A job: start it, renew it while it runs, say how it ended. What answers `lost` is somebody else's now.
async function run([rawId, rawEpoch, attempt, flat]) {
  const id = rawId.toString(), epoch = rawEpoch.toString(), job = {}, stop = new AbortController();
  for (let i = 0; i < flat.length; i += 2) job[flat[i]] = flat[i + 1];
  if (String(await call(said, 'start', '', worker, LEASE_MS, id, epoch)) !== 'ok') return; // the offer lapsed
  const renewing = setInterval(async () => { // `cancel`: it shall stop; `lost`: it is another's
    if (String(await call(said, 'renew', '', LEASE_MS, id, epoch, worker)) !== 'ok') stop.abort();
  }, LEASE_MS / 4);
  let verb = 'complete', told;
  try {
    const [args, kwargs] = job.payload?.length ? unpack(job.payload) : [[], {}];
    if (!(job.task in tasks)) throw new Error(`no task ${job.task} here`);
    await call(said, 'report', '', worker, id, epoch, pack({ n: attempt, total: null, note: 'begun' }));
    told = [pack(await tasks[job.task](args, kwargs, stop.signal))];
  } catch ({ name: type, message, stack: traceback }) {
    verb = 'fail';
    told = ['retry', 100, JSON.stringify({ type, message, traceback, worker }), `attempts exhausted: ${message}`];
  }
  clearInterval(renewing);
  if (stop.signal.aborted) [verb, told] = ['release', ['']]; // cancelled now; or `lost`, which changes nothing
  await call(said, verb, '', worker, id, epoch, ...told);
}

// The loop: claim what there are hands for; with nothing to do wait for a marker, or until something is due.
let stopped = false;
process.on('SIGTERM', () => { stopped = true; });
console.log(worker);
for (let request = 1; !stopped; request++) { // only after its answer: the same number gives the same jobs again
  if (running.size === AT_ONCE) await Promise.race(running.values());
  const free = AT_ONCE - running.size;
  const [word, jobs, nextMs] = await call(
    claiming, 'claim', '', worker, request, LEASE_MS, free, OFFER_MS, '', '', 2, 'async', free, 'thread', free);
  if (String(word) === 'gone') process.exit(1);
  for (const job of jobs) {
    running.set(job, run(job).catch((error) => console.error(error.message)).finally(() => running.delete(job)));
  }
  const wait_s = nextMs >= 0 ? Math.max(0.001, Math.min(IDLE_S, nextMs / 1000)) : IDLE_S;
  if (!jobs.length) await claiming('BZPOPMIN', `${prefix}wake:async`, `${prefix}wake:thread`, wait_s);
}
await Promise.all(running.values());
process.exit(0);
