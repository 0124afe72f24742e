namespace elastic_rank {}
