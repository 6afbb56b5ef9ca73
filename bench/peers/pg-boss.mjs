// pg-boss: bulk insert; two loops of fetch a batch and complete the batch.
// Its own work() sleeps half a second or more between batches; these loops sleep only when empty.

import { setTimeout as sleep } from 'node:timers/promises';

export default (require) => {
  const PgBoss = require('pg-boss');

  const open = async (connectionString, options) => {
    const boss = new PgBoss({ connectionString, ...options });
    boss.on('error', () => {});
    return boss.start();
  };

  return {
    distribution: 'pg-boss',
    unfinished: `
      select exists (select from pgboss.job where name = 'bench' and state <> 'completed')
    `,

    async install(connectionString) {
      const boss = await open(connectionString, {});
      await boss.createQueue('bench');
      await boss.stop({ graceful: false, wait: true });
    },

    async producer(connectionString) {
      const boss = await open(connectionString, { supervise: false, schedule: false });
      return (numbers) => boss.insert(numbers.map((i) => ({ name: 'bench', data: { i } })));
    },

    async worker(connectionString, slots, handle) {
      const boss = await open(connectionString, {});
      const loop = async () => {
        for (;;) {
          const jobs = await boss.fetch('bench', { batchSize: slots });
          if (jobs.length === 0) {
            await sleep(500);
            continue;
          }
          jobs.forEach((job) => handle(job.data.i));
          await boss.complete('bench', jobs.map((job) => job.id));
        }
      };
      loop();
      loop();
    },
  };
};
