"""Fleets: one learner a key, a million keys on one machine.

`thalweg.fleet.fleet` has the class and its calls, `playing` the batches, `folder` the state on disk, `durable` the
streams as bytes, `streams` their memory, and `seats` how a stream's memory is put under a learner's own kernels.
"""

from thalweg.fleet.fleet import Fleet, FleetError
from thalweg.fleet.keys import shard_of

__all__ = ["Fleet", "FleetError", "shard_of"]
