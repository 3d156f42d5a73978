"""The workloads that train: with torch, on the CPU, on the stand-in."""

from harness import Started, arguments


def test_tiny_learns(stand_in):
    with Started("tiny", *arguments("tiny", images=512), COLLO_DATA=stand_in) as member:
        hello = member.start(epochs=3, after_measured="exit")
        epochs = [member.hear() for _ in range(3)]
        assert member.hear() == {"event": "done"}
        assert member.end() == (0, "", "")
    assert hello["model"] == {"name": "resnet-14", "parameters": 175258}
    assert hello["dataset"] == {"name": "CIFAR-10", "synthetic": True, "items": 512}
    assert hello["device"] == "cpu" and hello["threads"] == 1
    assert hello["versions"].keys() >= {"python", "torch", "numpy"}
    losses = [epoch["loss"] for epoch in epochs]
    assert losses == sorted(losses, reverse=True), losses
    assert losses[0] > 1.5 and losses[-1] < 0.75 * losses[0], losses
    assert {epoch["items"] for epoch in epochs} == {512}


def test_two_at_once_have_the_very_same_losses(stand_in):
    few = arguments("tiny", images=64)
    with Started("tiny", *few, COLLO_DATA=stand_in) as one, Started("tiny", *few, COLLO_DATA=stand_in) as other:
        for member in (one, other):
            member.start(epochs=2, after_measured="exit")
        losses = [[member.hear()["loss"] for _ in range(2)] for member in (one, other)]
    assert losses[0] == losses[1]
