"""What the demo measures."""


def test_findings_are_of_the_right_size(found):
    assert 0.9 < found.answers.within < 1
    for errors in (found.by_epsilon, found.by_rows):
        measured = [each.mean for each in errors.measured]
        assert measured[0] > 2 * measured[-1]
        for value, low, high in zip(measured, errors.in_common, errors.centred, strict=True):
            assert 0.5 * low < value < 4 * low < high  # near the lower line, as it says
        assert measured[-1] < 1.5 * errors.in_common[-1]  # where the noise is small
    assert found.tree.memory < found.tree.query
