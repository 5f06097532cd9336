"""Loads the pairs."""
import sys, random, itertools, yaml, os
from pathlib import Path
D = Path('/tmp/w/wt/lead/tests/data')
L = yaml.CSafeLoader
def y(p): return yaml.load(open(p, encoding='utf-8'), Loader=L)
def labelled(names):
    out = []
    for n in names:
        for p in y(D / n if '/' not in n else n):
            if p['expect'] in ('update', 'compatible'):
                out.append((p['older'], p['newer'], float(p['expect'] == 'update'), p.get('group', '')))
    return out
def stores():
    out = []
    for s in y(D / 'updates_stores.yaml'):
        rows = [(k, '', t) for k, t in s['facts'].items()] + [('', c.get('of', ''), c['text']) for c in s['changes']]
        for (k, of, a), (ok, oof, b) in itertools.permutations(rows, 2):
            if k and k == oof: out.append((a, b, 1.0, 'stores_up'))
            elif not of or of not in (ok, oof): out.append((a, b, 0.0, 'stores'))
    return out
def dossiers():
    out = []
    for d in y(D / 'updates_dossiers.yaml'):
        texts = [t for ts in d for t in ts]
        out += [(a, b, 0.0, 'dossiers') for a, b in itertools.permutations(texts, 2)]
    return out
def scenarios(name):
    out = []
    for s in y(D / name):
        told = {k: v[1] for k, v in s['told'].items()}
        for new, old in (s.get('changed') or {}).items(): out.append((told[old], told[new], 1.0, 'scen_up'))
        for pair in (s.get('compatible') or []):
            a, b = pair
            out.append((told[a], told[b], 0.0, 'scen_comp'))
    return out
def lives():
    out = []
    for i, p in enumerate(y('/tmp/w/lead/pairs/lives.yaml')):
        for l in p['later']:
            for k, t in p['first'].items():
                if l['replaces'] == k: g, lab = 'lives_up', 1.0
                elif l.get('near') == k: g, lab = 'lives_near', 0.0
                else: g, lab = 'lives_other', 0.0
                out.append((t, l['text'], lab, g))
    return out
