"""What is said of a run."""

from tilewright.bench.surroundings import surroundings


def peers(*contestants):
    found = surroundings(gpu="A GPU", arch="sm_90", driver="580", contestants=contestants)
    return found.versions.keys() - {"tilewright", "torch", "triton", "cuda-tile"}


def test_versions_of_the_peers_that_took_part():
    assert peers("cutile", "torch", "compile") == set()
    assert peers("cutile", "tilegym_tma", "liger") == {"tilegym", "liger-kernel"}
