"""What keeps a replayed process from the network and from other programs."""
