"""Where should it go? Names, order, the frozen plan. Pure."""
