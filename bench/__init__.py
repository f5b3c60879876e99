"""What Outlast costs beside a bare relay on the same stack. `python -m bench` prints the ratios."""
