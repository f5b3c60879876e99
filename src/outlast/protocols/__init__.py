"""How each dialect is spelled: bytes to words and back. Dialects never import one another."""
