// An executor of taskq jobs in another language: no library of ours, a socket and the scripts as they are.
//   python -m taskq.scripts DIR && node executor.js PORT NAMESPACE QUEUE WORKER DIR
// lua/README.md, "Writing an executor", says what is done here and why.
'use strict';
const fs = require('node:fs');
const path = require('node:path');
const { randomBytes } = require('node:crypto');
const { setTimeout: pause } = require('node:timers/promises');
const { pack, unpack } = require('./msgpack.js');
const { connect } = require('./redis.js');

const [port, namespace, queue, name, folder] = process.argv.slice(2);
const worker = `${name}-${randomBytes(4).toString('hex')}`; // new at each start: numbers of claims begin at 1
const prefix = `${namespace}:{${queue}}:`;
const LEASE_MS = 4000, OFFER_MS = 5000, AT_ONCE = 4, IDLE_S = 2;

// --- a script: its KEYS are named in the line `keys.bind(...)`, the first of them is the prefix itself

const loaded = new Map();
async function call(redis, script, ...args) {
  if (!loaded.has(script)) {
    const text = fs.readFileSync(path.join(folder, `${script}.lua`), 'utf8');
    const names = /^keys\.bind\(([^)]*)\)/m.exec(text)[1].match(/\w+/g);
    const keys = names.map((each) => (each === 'prefix' ? prefix : prefix + each));
    loaded.set(script, { text, keys, sha: await redis('SCRIPT', 'LOAD', text) });
  }
  const { text, keys, sha } = loaded.get(script);
  try {
    return await redis('EVALSHA', sha, keys.length, ...keys, ...args);
  } catch (error) {
    if (!error.message.startsWith('NOSCRIPT')) throw error;
    return redis('EVAL', text, keys.length, ...keys, ...args); // the server has forgotten it
  }
}

// --- the tasks it knows

const tasks = {
  add: async ([a, b]) => a + b,
  greet: async (_, { whom }) => `hello ${whom}`,
  slow: async ([ms], _, signal) => { await pause(ms, null, { signal }); return 'slept'; },
  boom: async ([text]) => { throw new Error(text); },
};

// --- a job: start it, renew it while it runs, say how it ended. What answers `lost` is somebody else's now.

const said = connect(port);
const running = new Set();
async function run([rawId, rawEpoch, attempt, flat]) {
  const id = rawId.toString(), epoch = rawEpoch.toString(), job = {};
  for (let i = 0; i < flat.length; i += 2) job[flat[i]] = flat[i + 1];
  const [word] = await call(said, 'start', '', worker, LEASE_MS, id, epoch);
  if (String(word) !== 'ok') return; // the offer lapsed
  const stop = new AbortController();
  const renewing = setInterval(async () => {
    const [told] = await call(said, 'renew', '', LEASE_MS, id, epoch, worker);
    if (String(told) !== 'ok') stop.abort(); // `cancel`: it shall stop; `lost`: it is another's
  }, LEASE_MS / 4);
  let failure = null, result;
  try {
    const task = tasks[job.task];
    if (!task) throw new Error(`no task ${job.task} here`);
    const [args, kwargs] = job.payload?.length ? unpack(job.payload) : [[], {}];
    await call(said, 'report', '', worker, id, epoch, pack({ n: attempt, total: null, note: 'begun' }));
    result = await task(args, kwargs, stop.signal);
  } catch (error) {
    failure = error;
  }
  clearInterval(renewing);
  if (stop.signal.aborted) {
    await call(said, 'release', '', worker, id, epoch, ''); // cancelled now; or `lost`, which changes nothing
  } else if (!failure) {
    await call(said, 'complete', '', worker, id, epoch, result === undefined || result === null ? '' : pack(result));
  } else {
    const told = JSON.stringify({ type: failure.name, message: failure.message, traceback: failure.stack, worker });
    await call(said, 'fail', '', worker, id, epoch, 'retry', 100, told, `attempts exhausted: ${failure.message}`);
  }
}

// --- the loop: claim what there are hands for; with nothing to do wait for a marker, or until something is due

async function main() {
  const claiming = connect(port);
  let stopped = false;
  process.on('SIGTERM', () => { stopped = true; });
  console.log(worker);
  for (let request = 1; !stopped; ) {
    const free = AT_ONCE - running.size;
    if (free === 0) { await Promise.race(running); continue; }
    const [word, jobs, nextMs] = await call(
      claiming, 'claim', '', worker, request, LEASE_MS, free, OFFER_MS, '', '', 2, 'async', free, 'thread', free);
    if (String(word) === 'gone') process.exit(1);
    request += 1; // only after its answer: asked again under the same number, it gives the same jobs
    for (const job of jobs) {
      const one = run(job).catch((error) => console.error(error.message)).finally(() => running.delete(one));
      running.add(one);
    }
    const wait_s = nextMs >= 0 ? Math.max(0.001, Math.min(IDLE_S, nextMs / 1000)) : IDLE_S;
    if (!jobs.length) await claiming('BZPOPMIN', `${prefix}wake:async`, `${prefix}wake:thread`, wait_s);
  }
  await Promise.all(running);
  process.exit(0);
}
main();
