namespace elastic_rank::avx2 {}
