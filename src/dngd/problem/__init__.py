"""Problems: domains, conditions, references, and the catalogue."""
