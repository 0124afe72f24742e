namespace elastic_rank::avx512 {}
