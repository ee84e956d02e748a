"""The back ends of the conformance suite.

`sim`: the simulated FSx in process. `lfs`: the lfs adapter and the helper tree on the simulated executable. `real`: the
same two on a real Lustre; FSXWARM_CONFORMANCE_DIR names a writable folder on one with HSM, `lfs` is in PATH, and the
caller is root (cancelling and marking files as lost are root's).
"""
