"""The style of the SVG charts in light and dark mode, shared by the reports in HTML and by the dashboard."""

CHART_STYLE = """
:root { --series-0: #1f5fa8; --series-1: #b3480e; --series-2: #2f7d4f; --series-3: #7a4aa0; --series-4: #8a6d00;
  --series-5: #4d6b7a; --series-6: #a83264; --series-7: #5f5f5f }
@media (prefers-color-scheme: dark) { :root { --series-0: #7db4f2; --series-1: #f0a26b; --series-2: #7fcf9f;
  --series-3: #c3a0e6; --series-4: #dcc35a; --series-5: #9db9c7; --series-6: #f090b8; --series-7: #b0b0b0 } }
figure { margin: 0 } figcaption { color: var(--soft); font-size: .875rem }
svg.chart { width: 100%; height: auto; display: block }
svg.chart text { fill: var(--soft); font: 12px system-ui, sans-serif; text-anchor: middle }
svg.chart .end { text-anchor: end } svg.chart .start { text-anchor: start } svg.chart .label { font-size: 13px }
svg.chart .count { font-size: 11px } svg.chart .grid { stroke: var(--line); fill: none }
svg.chart .axis { stroke: var(--soft) } svg.chart .ideal { stroke: var(--soft); stroke-dasharray: 5 5 }
svg.chart .reach { stroke: var(--main); fill: none; stroke-width: 1.5 }
svg.chart .dot, svg.chart .bar, svg.chart circle.brier { fill: var(--main) }
svg.chart polyline { fill: none; stroke-width: 2 } svg.chart polyline.brier { stroke: var(--main) }
svg.chart polyline.bias { stroke: var(--other); stroke-dasharray: 6 3 } svg.chart circle.bias { fill: var(--other) }
svg.chart .target { fill: var(--series-2); opacity: .18 } svg.chart polyline.value { stroke: var(--main) }
svg.chart circle.value { fill: var(--main) } svg.chart .track { fill: var(--line) }
svg.chart .mark { stroke: var(--ink); stroke-width: 2; vector-effect: non-scaling-stroke }
@media (max-width: 40rem) { svg.chart text, svg.chart .label { font-size: 15px } svg.chart .count { font-size: 14px } }
.brier-key { color: var(--main) } .bias-key { color: var(--other) }
svg.share { height: .6rem; border-radius: 3px }
.legend { display: flex; flex-wrap: wrap; gap: .15rem .9rem; list-style: none; padding: 0; margin: .25rem 0 0;
  font-size: .8125rem; color: var(--soft) }
.legend li { margin: 0 } .legend svg { width: .7rem; height: .7rem; margin-right: .3rem; vertical-align: -.05rem }
""" + "".join(f".series-{number} {{ fill: var(--series-{number}) }}\n" for number in range(8))
