// The clock around a Node adapter: `node driver.mjs NAME enqueue|work|serve|produce`.
// The same verbs, order and answers as `__main__.py`; packages come from the folder in the order.

import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';

const BATCH = 1000;
const order = JSON.parse(process.env.BENCH);
const { url, n, slots } = order;
const [name, verb] = process.argv.slice(2);
const require = createRequire(`${order.modules}/`);
const adapter = (await import(`./${name}.mjs`)).default(require);

const answer = (fields) => {
  console.log(`BENCH ${JSON.stringify({ node: process.version, ...fields })}`);
};
const numbers = (first, end) => Array.from({ length: end - first }, (_, k) => first + k);
const seconds = () => performance.now() / 1000;
// CLOCK_MONOTONIC, as Python's time.monotonic: one clock for all processes of a machine.
const monotonic = () => Number(process.hrtime.bigint()) / 1e9;
const peakMb = () => process.resourceUsage().maxRSS / 1024;

async function enqueue() {
  await adapter.install(url);
  const push = await adapter.producer(url);
  const started = seconds();
  for (let first = 0; first < n; first += BATCH) {
    await push(numbers(first, Math.min(n, first + BATCH)));
  }
  const { version } = require(`${adapter.distribution}/package.json`);
  answer({ enqueue_s: seconds() - started, version });
}

async function work() {
  const { Client } = require('pg');
  const client = new Client({ connectionString: url });
  await client.connect();
  let handled = 0;
  let allHandled;
  const wait = new Promise((resolve) => { allHandled = resolve; });
  const started = seconds();
  await adapter.worker(url, slots, () => { if (++handled === n) allHandled(); });
  // The database is asked only once every handler was called, so asking disturbs nothing.
  await wait;
  const handlerS = seconds() - started;
  while ((await client.query(adapter.unfinished)).rows[0].exists) await sleep(2);
  answer({ handler_s: handlerS, done_s: seconds() - started, handled, peak_mb: peakMb() });
}

async function serve() {
  const starts = [];
  await adapter.worker(url, slots, (number) => starts.push([number, monotonic()]));
  answer({ ready: true });
  for await (const _ of process.stdin);
  answer({ starts, peak_mb: peakMb() });
}

async function produce() {
  const push = await adapter.producer(url);
  const sent = [];
  for (let number = 0; number < n; number += 1) {
    sent.push([number, monotonic()]);
    await push([number]);
    await sleep(order.pause_s * 1000 * (0.5 + Math.random()));
  }
  answer({ sent });
}

await { enqueue, work, serve, produce }[verb]();
process.exit(0);
