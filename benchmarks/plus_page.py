"""docs/plus.md, made from the figures in results/plus.json."""

from __future__ import annotations

from typing import Any

HEAD = """\
# BD-CSPN-plus

Tables made by `python -m benchmarks.plus_study FEATURES...`; do not edit. `bd-cspn-plus` keeps \
the paper's two corrections and gives each a safeguard. No class sizes are known, nothing is \
trained, and there is one set of defaults.

## What it does

All features have length one. With prototypes P_n (eq. 3), N ways, K_n shots and M queries:

1. **Centre.** c is the mean of the P_n; support and queries are seen from there.
2. **A shift that is trusted as far as it can be.** d = c - mean(queries) is the paper's shift \
(eq. 8). If the queries hold the classes equally, d is sampling noise, and its squared length is \
expected to be

       e = s2 (sum_n 1 / K_n / N^2 + 1 / M),

   where s2 is the scatter of a sample around the mean of its class, the queries counted to the \
class they are predicted as. In hundreds of dimensions |d|^2 keeps close to e, so an excess tells \
unequal classes or foreign queries, without a guess at either. The share taken is

       t = min(1, e / |d|^2)^caution,  and 0 where M < N.

   Queries become normalise(x + t d - c), the support normalise(x - c).
3. **Rounds.** Each time, of the queries predicted as a class the `joining` with the highest \
cosine join it, with weight (softmax(scale cos) / that of the surest)^power, divided by the root \
of the sum of these weights. The prototype is the sum of the support samples and the weighted \
queries. Pseudo-labels are wrong together, so n of them count as the root of n.
4. **Answer**: cosines with the prototypes of the last round.

Options and defaults are in [methods.md](methods.md); they were chosen on validation classes only.

## Against others

Accuracy in %, 1-shot / 5-shot, 5-way, 15 queries a class unless the column says otherwise, \
{episodes} episodes (a fifth of that at 20 ways), validation classes. Every entry is within \
± {widest:.1f} (95 %).

"""
ABLATION = """
## Without each part

Points gained (+) or lost (-) against `bd-cspn-plus` on the same episodes, 1-shot / 5-shot. A star \
marks a difference whose 95 % interval excludes zero.

"""
TAIL = """
## Where it does not help

{worse}

It looks at a pile as a whole, as every transductive method: what it says of a picture depends on \
the others. With fewer queries than classes nothing is shifted.
"""


def plus_page(figures: dict[str, Any]) -> str:
    """The page in Markdown."""
    sets = figures["sets"]
    text = HEAD.format(episodes=figures["episodes"], widest=_widest(sets))
    names = list(next(iter(next(iter(sets.values())).values()))["1"])
    compared = [name for name in names if not name.startswith("bd-cspn-plus:")]
    for title, worlds in sets.items():
        text += _table(f"`{title}`", worlds, {f"`{n}`": n for n in compared}, _accuracy)
    text += ABLATION
    parts = {f"`{n}`": n for n in names if n.startswith("bd-cspn-plus:")}
    for title, worlds in sets.items():
        text += _table(f"`{title}`", worlds, parts, _difference)
    return text + TAIL.format(worse=_worse(sets))


def _table(title: str, worlds: dict[str, Any], rows: dict[str, str], cell: Any) -> str:
    lines = [f"| {title} | {' | '.join(worlds)} |", "|---|" + "---:|" * len(worlds)]
    for shown, name in rows.items():
        cells = [" / ".join(cell(world[k][name]) for k in ("1", "5")) for world in worlds.values()]
        lines.append(f"| {shown} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n\n"


def _accuracy(figure: dict[str, Any]) -> str:
    return f"{figure['accuracy']:.1f}"


def _difference(figure: dict[str, Any]) -> str:
    mean, ci95 = figure["minus_plus"]
    return f"{mean:+.1f}{'*' if abs(mean) > ci95 else ''}"


def _widest(sets: dict[str, Any]) -> float:
    return max(
        figure["ci95"]
        for worlds in sets.values()
        for world in worlds.values()
        for by_method in world.values()
        for figure in by_method.values()
    )


def _worse(sets: dict[str, Any]) -> str:
    """Where one of the others is better by more than the interval of the difference."""
    found = []
    for title, worlds in sets.items():
        for world, by_shot in worlds.items():
            for shot, by_method in by_shot.items():
                for name, figure in by_method.items():
                    mean, ci95 = figure["minus_plus"]
                    if not name.startswith("bd-cspn-plus") and mean > ci95:
                        found.append(
                            f"- `{title}`, {world}, {shot}-shot: `{name}` is better by "
                            f"{mean:.1f} ± {ci95:.1f}."
                        )
    return "\n".join(found) or "Nowhere in the table above is another method clearly better."
