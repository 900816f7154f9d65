"""Content as providers and frameworks write it, found inside the values of any dialect's attributes."""
