"""Programs for maintainers, run from the root of the repository. Not part of the installed package."""
