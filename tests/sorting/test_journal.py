"""Journals of one folder never replace each other."""

import threading

from helpers.sorting import predicted
from protorect.sorting.journal import Placement, Plan, load_plans, new_name, write_plan


def test_journals_written_at_the_same_time_are_all_kept(colors):
    rows = predicted(colors.pictures)
    placements = [
        Placement(row, f"one/{number}.png", content)
        for number, (row, content) in enumerate(zip(rows, rows.contents, strict=True))
    ]
    plans = []
    barrier = threading.Barrier(len(placements))

    def write(placement):
        barrier.wait()
        plan = Plan("move", (), "cspn", True, (placement,), new_name(colors.out))
        plans.append(plan)
        write_plan(colors.out, plan)

    threads = [threading.Thread(target=write, args=(placement,)) for placement in placements]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(load_plans(colors.out), key=lambda plan: plan.name) == sorted(
        plans, key=lambda plan: plan.name
    )
    assert len({plan.name for plan in plans}) == 24


def test_plans_are_loaded_in_the_order_in_which_they_were_written(colors):
    plans = []
    for number in range(12):
        plans.append(Plan("link", (("/e", "cat"),), str(number), True, (), new_name(colors.out)))
        write_plan(colors.out, plans[-1])
    assert load_plans(colors.out) == plans
