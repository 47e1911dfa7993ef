import io
import pickle

import pytest
import torch

pytestmark = pytest.mark.usefixtures("gpu")


def test_pickled_tensor_comes_back_on_its_device():
    x, y = pickle.loads(pickle.dumps((torch.ones(3, device="cuda"), torch.zeros(3))))
    assert (x.device.type, x.tolist()) == ("cuda", [1, 1, 1])
    assert y.device.type == "cpu"


@pytest.mark.parametrize(
    ("location", "devices"),
    [(None, ["cuda", "cpu"]), ("cpu", ["cpu", "cpu"]), ("cuda", ["cuda", "cuda"]), ("cuda:0", ["cuda", "cuda"])],
)
def test_saved_tensor_goes_where_it_is_mapped(location, devices):
    file = io.BytesIO()
    torch.save({"x": torch.ones(3, device="cuda"), "y": torch.zeros(3)}, file)
    file.seek(0)
    loaded = torch.load(file, map_location=location)
    assert [value.device.type for value in loaded.values()] == devices
    assert loaded["x"].tolist() == [1, 1, 1]
