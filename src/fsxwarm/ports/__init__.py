"""What the engine asks of the world, as narrow Protocols. Adapters in lustre/ and sim/ implement them."""
