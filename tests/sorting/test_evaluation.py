"""Predicted against true labels."""

from helpers.sorting import placement
from protorect.sorting.contact_sheet import contact_sheet
from protorect.sorting.evaluation import evaluate_placements


def test_many_classes_have_a_list_of_pairs():
    names = [f"c{number}" for number in range(50)]
    wrong = [placement(f"/p/c{n}/{i}.jpg", "c0", 0.9) for n in range(1, 30) for i in range(n)]
    confused = evaluate_placements(wrong, names).confused
    assert len(confused) == 20
    assert [len(pictures) for *_, pictures in confused] == list(range(29, 9, -1))
    evaluation = evaluate_placements(wrong, names)
    (page,) = contact_sheet(wrong, names, [], "t", evaluation)
    assert "<tr><td>c29</td><td>c0</td><td>29</td></tr>" in page
    assert "<figure>" not in page


def test_the_evaluation_against_counts_by_hand():
    placements = [
        placement("/p/cat/1.jpg", "cat", 0.9),
        placement("/p/cat/2.jpg", "dog", 0.9),
        placement("/p/cat/3.jpg", "dog", 0.6, "_unsure"),
        placement("/p/dog/4.jpg", "dog", 0.9),
        placement("/p/owl/5.jpg", "dog", 0.9, "_unknown"),
        placement("/p/owl/6.jpg", "cat", 0.9),
    ]
    evaluation = evaluate_placements(placements, ["cat", "dog"])
    assert evaluation.counts.tolist() == [[1, 2], [0, 1]]
    assert (evaluation.pictures, evaluation.accuracy) == (4, 50.0)
    assert (evaluation.accepted, evaluation.accepted_correct) == (4, 2)  # one is an owl
    assert (evaluation.distractors, evaluation.distractors_unknown) == (2, 1)
    assert [(true, label, len(some)) for true, label, some in evaluation.confused] == [
        ("cat", "dog", 2)
    ]
    assert "50 % of 2 pictures of other folders are unknown" in evaluation.summary()
