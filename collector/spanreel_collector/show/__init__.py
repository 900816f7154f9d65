"""Sessions and accounts as text for people. Prints nothing itself."""
