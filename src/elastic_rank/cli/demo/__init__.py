"""The demo: depth follows lent capacity while real candidates are scored."""
