// graphile-worker: addJobs; one runner with a local queue of 500 and batched completion.
// It deletes finished jobs.

export default (require) => {
  const { Logger, makeWorkerUtils, run } = require('graphile-worker');
  const logger = new Logger(() => () => {});
  const localQueue = { size: 500 };
  const batched = { localQueue, completeJobBatchDelay: 0, failJobBatchDelay: 0 };

  return {
    distribution: 'graphile-worker',
    unfinished: 'select exists (select from graphile_worker._private_jobs)',

    async install(connectionString) {
      const utils = await makeWorkerUtils({ connectionString, logger });
      await utils.migrate();
      await utils.release();
    },

    async producer(connectionString) {
      const utils = await makeWorkerUtils({ connectionString, logger });
      return (numbers) => utils.addJobs(
        numbers.map((i) => ({ identifier: 'noop', payload: { i } })),
      );
    },

    async worker(connectionString, slots, handle) {
      const limits = { concurrentJobs: slots, maxPoolSize: 10, pollInterval: 2000 };
      const worker = { connectionString, logger, ...limits, ...batched };
      await run({ preset: { worker }, taskList: { noop: async ({ i }) => { handle(i); } } });
    },
  };
};
