"""Words: frozen data that every other package speaks in. Pure; the one decision is `judge`."""
