"""An agent that researches a subject, and publishes its report when a person has approved it.

    treadle dev examples.research_agent:app
    treadle tasks enqueue research '{"subject": "looms"}'
    treadle waits
    treadle waits answer <the last characters of the id> approve --actor ada

Run the other commands in a second terminal, after the `export` that the first one prints. The
model is a fake one: it needs no key, and charges two cents a call.
"""

from datetime import timedelta
from typing import Any

from treadle import Context, Treadle

app = Treadle()


def fake_model(prompt: str) -> str:
    """Simulate a model; call yours here."""
    job, _, subject = prompt.partition(": ")
    if job == "Plan":
        return f"the history of {subject}\n{subject} today"
    if job == "Read":
        return f"Much has been written about {subject}."
    return f"Report. {subject}"


async def ask_model(ctx: Context, prompt: str) -> str:
    """Call the model and record its cost."""
    text = fake_model(prompt)
    await ctx.spend(0.02, model="fake", input_tokens=len(prompt), output_tokens=len(text))
    return text


@app.task
async def read(ctx: Context, topic: str) -> str:
    """Find out about one topic."""
    ctx.log.info("read", topic=topic)
    note: str = await ctx.step("read", ask_model, ctx, f"Read: {topic}")
    return note


@app.task(max_attempts=5)
async def research(ctx: Context, subject: str) -> dict[str, Any]:
    """Plan, research all topics in parallel, write, and ask before publishing."""
    plan = await ctx.step("plan", ask_model, ctx, f"Plan: {subject}")
    notes = await ctx.spawn_and_wait([read.call(topic=topic) for topic in plan.splitlines()])

    remarks: list[str] = []
    for draft in (1, 2, 3):
        prompt = f"Write: {' '.join(notes + remarks)}"
        report = await ctx.step(f"draft {draft}", ask_model, ctx, prompt)
        answer = await ctx.ask(
            f"Publish draft {draft} about {subject}?",
            context=report,
            approvers=1,
            expires=timedelta(days=2),
            on_expiry="deny",
        )
        if answer.value != "revise":
            break
        remarks.append(answer.note or "Be shorter.")
    return {"report": report, "published": answer.approved, "by": answer.by}
