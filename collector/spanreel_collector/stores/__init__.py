"""Where the service keeps what it received and what it made of it: one interface, behind it SQLite and PostgreSQL."""
