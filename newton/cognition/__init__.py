"""One input to one bundle: frame, budget, candidates, scores, fill, render, and the reason for each of them."""
