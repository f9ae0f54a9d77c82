"""Problems: residual terms and trusted reference solutions."""
