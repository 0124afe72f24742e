namespace elastic_rank::portable {}
