import os

import pytest

from newton.providers.minilm import MiniLM
from tests.observing import load_situations, tell
from tests.scenarios.conftest import Mind
from tests.scenarios.test_observations import spoken_to


@pytest.mark.parametrize("way", os.environ.get("WAYS", "events messages").split())
async def test_dev(mind: Mind, way) -> None:
    sit, unrel = load_situations(os.environ.get("SET", "observations_dev"))

    async with spoken_to(mind, MiniLM()) as client:
        for s in sit:
            await tell(client, s, way)
        await client.append_messages("elsewhere", [{"role": "user", "content": "Good morning.", "ref": "m"}])
        ok = {"same": 0, "other": 0}
        for s in sit:
            for which, sess in (("same", s["name"]), ("other", "elsewhere")):
                c = await client.context(s[which], session=sess)
                ev = [i for i in c["items"] if i["kind"] == "event"]
                has = any(s["mark"] in i["text"] for i in ev)
                ok[which] += has
                print(("OK  " if has else "MISS"), which, s["name"], "|", s[which], "| n=", len(ev), c["frame"]["name"])
                if not has or len(ev) > 1:
                    for i in ev:
                        print("      in ", i["reason"][-60:], i["text"][27:110])
                if not has:
                    for d in c["dropped"]:
                        if "tool result" in d["reason"]:
                            m = await client.expand(d["memory_id"])
                            print(
                                "      out",
                                round(d["features"]["similarity"], 2) if "features" in d else "",
                                d["reason"][:100],
                                "|",
                                m["full_text"][:90].replace("\n", "/"),
                            )
        print(ok, len(sit))
        for n, u in enumerate(unrel):
            for sess in (sit[n % len(sit)]["name"], "elsewhere"):
                c = await client.context(u, session=sess)
                ev = [i for i in c["items"] if i["kind"] == "event"]
                if ev:
                    print("UNREL", sess, u, len(ev))
                    for i in ev:
                        print("      in ", i["reason"][-70:], i["text"][27:110])


async def test_dist(mind: Mind) -> None:
    import re

    sit, unrel = load_situations("observations_dev")
    more = [
        "How do I get a refund?",
        "What should I cook tonight?",
        "Remind me to call Ana.",
        "Who is my dentist?",
        "Summarize the meeting with Ben.",
        "Write a function that reverses a list.",
        "What is a monad?",
        "How do I centre a div?",
        "Which Python version has match statements?",
        "Explain git rebase.",
        "Draft a release announcement.",
        "Should we use Redis or Postgres for the queue?",
        "What did Ana say about the budget?",
        "Add a login page to the app.",
        "Rename the variable x to count.",
    ]
    async with spoken_to(mind, MiniLM()) as client:
        for s in sit:
            await tell(client, s, "events")
        await client.append_messages("elsewhere", [{"role": "user", "content": "Good morning.", "ref": "m"}])
        for u in [*unrel, *more]:
            best = {}
            for sess in [sit[n]["name"] for n in (0, 3, 8, 10)]:
                c = await client.context(u, session=sess)
                for d in [*c["dropped"], *c["items"]]:
                    m = re.search(
                        r"a tool result of (this|another) session.*cosine (-?[\d.]+), shared words ([\d.]+)",
                        d["reason"],
                    )
                    if m:
                        best[m[1]] = max(best.get(m[1], 0), float(m[2]) + 0.6 * float(m[3]))
                nev = sum(i["kind"] == "event" for i in c["items"])
                if nev:
                    print("   shown", sess, nev, [i["text"][27:80] for i in c["items"] if i["kind"] == "event"])
            print({k: round(v, 2) for k, v in best.items()}, u)
