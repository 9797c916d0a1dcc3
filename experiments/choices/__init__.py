"""Settings chosen on held-out parts of training sets: what was tried, and what came out."""
