"""Evidence that anyone can run: what audits and attacks find in releases, beside what is promised."""
