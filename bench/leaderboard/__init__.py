"""The leaderboard: Newton, plain baselines and other memory libraries on public data sets, with receipts."""
