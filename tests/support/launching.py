"""What tests of launches share: a launcher, and kernels for it."""

import cuda.tile as ct

from tilewright.interpret.launch import Launcher

LAUNCHER = Launcher()


def launch(grid, kernel, *arguments):
    LAUNCHER.launch(0, grid, kernel, arguments)


@ct.kernel
def double(X, Y):
    i = ct.bid(0)
    ct.store(Y, (i,), ct.load(X, (i,), (4,)) * 2)


@ct.kernel
def fill(X, value):
    ct.store(X, (ct.bid(0),), value)


@ct.kernel
def add_constant(X, n: ct.Constant):
    ct.store(X, (ct.bid(0),), ct.load(X, (ct.bid(0),), (1,)) + n)
