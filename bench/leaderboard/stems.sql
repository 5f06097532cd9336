-- name: stem_words(words)
-- Baseline for benchmarks: the English stems of words; none for a stop word.
select word, ts_lexize('english_stem', word) as stems
from unnest($1::text[]) as word;
