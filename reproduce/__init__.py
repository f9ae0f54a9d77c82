"""The paper's studies, each by one command."""
