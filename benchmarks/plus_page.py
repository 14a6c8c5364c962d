"""docs/plus.md, made from the figures in results/plus.json."""

from __future__ import annotations

from typing import Any

HEAD = """\
# BD-CSPN-plus

Tables made by `python -m benchmarks.plus_study FEATURES...`; do not edit. `bd-cspn-plus` takes \
the paper's rectification further: it reads the pile twice, and the pile decides which reading is \
right. No class sizes are known, nothing is trained, and there is one set of defaults.

## What it does

Features of a task that are nowhere negative come from a rectifier and are skewed: their roots are \
taken first. Then all have length one. With prototypes P_n (eq. 3), N ways, K_n shots and M queries:

1. **Centre.** c is the mean of the P_n. Every sample becomes normalise(x - c). S_n is the sum of \
the support samples of class n, cos_in the cosine of query i with S_n.
2. **Wary reading**, for a pile of which nothing is known. `rounds` times, of the queries \
predicted as a class the `joining` with the highest cosine join it: the prototype is S_n plus \
these queries, with weight (softmax(scale cos) / that of the surest)^power, divided by the root \
of the sum of these weights. Pseudo-labels are wrong together, so n of them count as the root of \
n. Foreign queries seldom are among the few. In the end p_in = softmax(scale cos), and u_i is the \
weight in the last round, 0 for what did not join.
3. **Equal reading**, for a pile in equal parts. q_in is proportional to o_n exp(sharpness \
cos_in) with odds o_n such that every class gets M / N queries (eight rounds of Sinkhorn's \
algorithm), the prototype is S_n plus all queries under q_in, and that twice. A class whose \
prototype lies near all queries no longer draws them: this is the paper's cross-class bias, \
removed class by class where the shift (eq. 8) moves all queries alike. Every query weighs (M / \
N)^-1/2.
4. **Evidence.** Which reading is right shows in how likely the queries are. With the prototypes \
of the equal reading's first round and proportions r_n,

       L(r) = sum_i log sum_n r_n exp(sharpness cos_in),   E = max_r L(r) - L(1 / N),

   the maximum by eight rounds of expectation and maximisation. In equal parts E is near 0, \
although the prototypes are biased; unequal classes and foreign queries raise it. The equal \
reading's share is

       t = exp(-E / (tolerance (N - 1)^0.85 M^1/2)),  and 0 where M < N.

   Where classes are unequal E grows with M, where they are equal it does not: a small pile cannot \
say much, so less is asked of it.

5. **Regression.** Directions W_n minimise the squared error to the labels of the support and to \
(1 - t) p + t q of the queries, less 1 / N, each query weighing (1 - t) u_i + t (M / N)^-1/2 and \
the support 1 (unequal shots evened out), plus penalty |W|^2; `steps` steps of conjugate \
gradients from zero. The first step gives weighted prototypes, the further ones take out what the \
classes share.
6. **Trust.** With few classes the regression is better than the prototypes; with many it depends \
on the features, and only labels can tell. Where classes have several labelled samples, \
prototypes and regression are fitted to every second one and classify the rest, and the other way \
round. With g the number of samples that only the regression gets right less those that only the \
prototypes do, and m the number of both, r = 1 / (1 + exp(-2 g / m^1/2 - 1)); with one sample a \
class r = 1.
7. **Answer**: (1 - r) times the cosines with the prototypes of the first step and r times those \
with W_n, plus t times the logarithm of the odds that share the queries equally, divided by \
sharpness.

Options and defaults are in [methods.md](methods.md); they were chosen on the validation classes \
of Omniglot and CUB and on the grocery photographs, which are the sets below.

## Against others

Accuracy in %, 1-shot / 5-shot, 5-way, 15 queries a class unless the column says otherwise, \
{episodes} episodes (4 / N of them at N = 20 ways and more; 10 queries a class at 200), \
validation classes. Every entry is within ± {widest:.1f} (95 %).

"""
DESCENTS = """
The methods that descend a gradient, on {episodes} episodes. Every entry is within ± {widest:.1f}.

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
the others. A small pile holds little evidence, so that methods which are told that the classes \
are equal stay ahead of it there, where they are. With several labelled samples a class and very \
unequal classes, `alpha-tim` gains by letting the large classes grow, for which it pays where \
classes are equal and where queries are foreign.
"""
NOWHERE = "Nowhere in the tables above is another method clearly better."


def plus_page(figures: dict[str, Any]) -> str:
    """The page in Markdown."""
    sets = figures["sets"]
    text = HEAD.format(episodes=figures["episodes"], widest=_widest(sets))
    names = list(next(iter(next(iter(sets.values())).values()))["1"])
    compared = [name for name in names if not name.startswith("bd-cspn-plus:")]
    for title, worlds in sets.items():
        text += _table(f"`{title}`", worlds, {f"`{n}`": n for n in compared}, _accuracy)
    descents = figures["descents"]
    text += DESCENTS.format(episodes=figures["episodes_of_descents"], widest=_widest(descents))
    for title, worlds in descents.items():
        names_here = next(iter(worlds.values()))["1"]
        text += _table(f"`{title}`", worlds, {f"`{n}`": n for n in names_here}, _accuracy)
    text += ABLATION
    parts = {f"`{n}`": n for n in names if n.startswith("bd-cspn-plus:")}
    for title, worlds in sets.items():
        text += _table(f"`{title}`", worlds, parts, _difference)
    return text + TAIL.format(worse="\n".join(_worse(sets) + _worse(descents)) or NOWHERE)


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


def _worse(sets: dict[str, Any]) -> list[str]:
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
    return found
