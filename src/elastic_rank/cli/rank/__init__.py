"""``elastic-rank rank``: depth against quality and cost on a learning-to-rank table."""
