"""OTLP over HTTP and gRPC: what was sent is taken apart, committed, and then answered, as the specification says."""
