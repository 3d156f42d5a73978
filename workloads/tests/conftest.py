import pytest


def pytest_configure(config):
    config.addinivalue_line("markers", "gpu: needs a GPU that torch can use; `just gpu-tests` runs these")


def pytest_runtest_setup(item):
    if item.get_closest_marker("gpu"):
        import torch

        if not torch.cuda.is_available():
            pytest.skip("there is no GPU here that torch can use")


@pytest.fixture
def data(tmp_path, monkeypatch):
    """An empty data folder of this test's own."""
    monkeypatch.setenv("COLLO_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture(scope="session")
def stand_in(tmp_path_factory):
    """A data folder with the synthetic stand-in, written once for all tests."""
    import collo_data

    folder = tmp_path_factory.mktemp("data")
    collo_data.synthesize("cifar-10", folder=folder / "synthetic" / "cifar-10")
    return folder
