"""An agent of the work API: it polls for dispatched items, does them and reports the outcome.

Start a server with `treadle server`, then the agent, then add an item:

    python examples/work_agent.py --agent steve-w
    python examples/work_agent.py --agent steve-w --add "Count the words of this sentence"

Items that cannot be done fail with the error as their notes; `--once` polls once and exits.
"""

import argparse
import time

from treadle.client import ClientError, WorkQueue


def work(item: dict[str, object]) -> str:
    """Do one item and return its notes."""
    if item["type"] != "count_words":
        raise ValueError(f"I do not know how to do {item['type']}")
    return f"{len(str(item['description']).split())} words"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--url", default="http://127.0.0.1:8420")
    options.add_argument("--token")
    options.add_argument("--agent", default="steve-w")
    options.add_argument("--every", type=float, default=60.0, help="seconds between two looks")
    options.add_argument("--once", action="store_true")
    options.add_argument("--add", metavar="TEXT", help="dispatch an item to the agent and end")
    given = options.parse_args()

    with WorkQueue(given.url, given.token) as queue:
        if given.add:
            item = queue.work_add("count_words", given.add, agent=given.agent)
            queue.work_dispatch(item["id"], given.agent, pick_up=False)
            print(f"dispatched {item['id']}", flush=True)
            return
        while True:
            try:
                # Resume items that were in progress when this program ended, or picked up for it.
                done = queue.work_mine(given.agent, work, resume=True)
                print(f"did {done} items", flush=True)
            except ClientError as error:
                print(f"the server: {error}", flush=True)
            except Exception as error:
                print(f"failed: {error}", flush=True)
            if given.once:
                return
            time.sleep(given.every)


if __name__ == "__main__":
    main()
