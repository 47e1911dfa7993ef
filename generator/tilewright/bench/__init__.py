"""Time operators beside their peers, each checked before it is timed, and the limits of the GPU in the same run."""
