"""A residual's program as data: trace it, flatten it, find where parameters enter."""
