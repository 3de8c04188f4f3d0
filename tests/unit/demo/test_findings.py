"""What the demo measures."""


def test_findings_are_of_the_right_size(found):
    assert 0.9 < found.answers.within < 1
    for errors in (found.by_epsilon, found.by_rows):
        measured = [each.mean for each in errors.measured]
        assert measured[0] > 2 * measured[-1]
        for value, low, high in zip(measured, errors.matched, errors.spread, strict=True):
            assert 0.2 * low < value < 1.5 * low < high  # at the lower line or below, as it says
    assert found.tree.memory < found.tree.query
