"""A landing page as a DAG: three parallel tasks, a plan made of two of them, then the deployment.

    treadle dev examples.landing_page:app
    python -m examples.landing_page "a weaving school"
    treadle dags list

Run the other commands in a second terminal, after the `export` that the first one prints. If you
kill the worker, another one continues where it was, and no call of the model is paid twice.

    research ──┐
               ├── synthesise ──┐
    design ────┘                ├── test_and_deploy
    implement ──────────────────┘

The model is a fake one: it needs no key. With MODEL_LOG=<file> it notes each call there, and
with BUILD="npm run build" the page is built by a command of yours.
"""

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import anyio

from treadle import Context, Dag, Treadle

app = Treadle()

PRICES = {"small": 0.01, "large": 0.07}


def fake_model(model: str, prompt: str) -> str:
    """Simulate a model; call yours here."""
    if log := os.environ.get("MODEL_LOG"):
        with Path(log).open("a") as file:
            file.write(json.dumps({"model": model, "prompt": prompt}) + "\n")
    return f"{model} model on: {prompt}"


async def ask(ctx: Context, prompt: str, model: str = "small") -> str:
    """Call a model and record its cost; in a step both happen once."""
    text = await anyio.to_thread.run_sync(fake_model, model, prompt)
    await ctx.spend(PRICES[model], model=model, input_tokens=len(prompt), output_tokens=len(text))
    return text


@app.task(max_attempts=5)
async def research(ctx: Context, subject: str) -> list[str]:
    """Research existing pages."""
    rivals = await ctx.step("find", ask, ctx, f"Who else offers {subject}?")
    return [rivals, await ctx.step("compare", ask, ctx, "What do their pages have in common?")]


@app.task(max_attempts=5)
async def design(ctx: Context, subject: str) -> dict[str, Any]:
    """Sketch two layouts."""
    moods = ("calm", "bold")
    return {
        "layouts": [
            await ctx.step(mood, ask, ctx, f"Sketch a {mood} page for {subject}.", model="large")
            for mood in moods
        ]
    }


@app.task(max_attempts=5)
async def implement(ctx: Context, subject: str) -> str:
    """Write the page, build it, and let the model read what came out."""
    page = await ctx.step("page", ask, ctx, f"Write the page of {subject}.", model="large")
    style = await ctx.step("style", ask, ctx, "Write its style sheet.")
    # It costs no money, so it is not a step: after a crash it is repeated.
    await anyio.run_process(shlex.split(os.environ.get("BUILD", "true")))
    review = await ctx.step("review", ask, ctx, "Does it read well?")
    return "\n".join([page, style, review])


@app.task(max_attempts=5)
async def synthesise(ctx: Context, findings: list[str], layouts: list[str]) -> str:
    """Combine the research and the design into one plan."""
    prompt = f"Choose of {len(layouts)} layouts by {len(findings)} findings."
    plan: str = await ctx.step("plan", ask, ctx, prompt, model="large")
    return plan


@app.task(max_attempts=5)
async def test_and_deploy(ctx: Context, subject: str, page: str, plan: str) -> str:
    """Check the page against the plan and put it online."""
    await ctx.step("check", ask, ctx, f"Is this page as planned? {page} {plan}")
    return f"https://example.org/{subject.replace(' ', '-')}"


async def order_page(subject: str) -> Dag:
    """Create the whole DAG at once; workers do the rest."""
    async with app.dag(f"Landing page for {subject}", budget_usd=5) as dag:
        found = dag.add(research, subject=subject)
        sketched = dag.add(design, subject=subject)
        written = dag.add(implement, subject=subject)
        plan = dag.add(synthesise, findings=found.output, layouts=sketched.output["layouts"])
        dag.add(test_and_deploy, subject=subject, page=written.output, plan=plan.output)
    return dag


async def main(subject: str) -> None:
    """Order a page and wait for it."""
    async with app:
        dag = await order_page(subject)
        print(f"ordered: treadle dags show {dag.id}")
        state = await dag.wait(timeout=300)
        print(f"{state.status}: {state.tasks} tasks, {state.cost_usd} USD")


if __name__ == "__main__":
    anyio.run(main, sys.argv[1] if len(sys.argv) > 1 else "a weaving school")
