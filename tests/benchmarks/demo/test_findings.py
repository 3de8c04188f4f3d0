"""What the demo measures."""

import pytest

pytestmark = pytest.mark.docs


def test_findings_are_of_the_right_size(found):
    assert 0.9 < found.answers.within < 1
    for errors in (found.by_epsilon, found.by_rows):
        measured = [each.mean for each in errors.measured]
        assert measured[0] > 2 * measured[-1]
        for value, low, high in zip(measured, errors.in_common, errors.centred, strict=True):
            assert 0.5 * low < value < 4 * low < high  # near the lower line, as it says
        assert measured[-1] < 1.5 * errors.in_common[-1]  # where the noise is small


def test_the_images_that_are_shown_are_answered_mostly_rightly(found):
    assert len(found.asked) == 10
    assert sum(each.answer == each.truth for each in found.asked) >= 6
    for each in found.asked:
        assert each.image.min() == 0
        assert 0.9 < each.image.max() <= 1
        assert each.answer == each.private.argmax()


def test_losses_add_up_to_what_is_lost(found):
    for index, each in enumerate(found.accuracies):
        lost = sum(loss[index] for loss in found.losses.values())
        assert lost == pytest.approx(found.ceilings.attention.mean - each.private.mean)


def test_the_first_attack_is_on_exact_attention(found):
    assert found.attack_on_exact.share == 1.0
    assert [each.epsilon for each in found.attacks] == [None, 0.5, 1.0, 4.0]
    assert found.attack_on_chosen.epsilon == 1.0
