"""A simulated FSx for Lustre: a pure model of its HSM behind the same ports, and an executable `lfs` around it."""
