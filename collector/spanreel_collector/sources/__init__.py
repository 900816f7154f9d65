"""Where exported telemetry comes from; each module turns one kind of source into `Batch`es."""
