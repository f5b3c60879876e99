"""One YAML file, read, checked and turned into a topology."""
