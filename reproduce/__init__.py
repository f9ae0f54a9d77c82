"""The paper's studies, one command each: `python -m reproduce --help`. Not part of the installed package."""
