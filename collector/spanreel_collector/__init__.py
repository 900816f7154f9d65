"""The collector side of spanreel: OTLP in, session documents out. Imports spanreel; spanreel never imports it."""
