"""Show results: text for people, JSON and JUnit for machines; no decisions."""
