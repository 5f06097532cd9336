# fits the sum of trees and reader on pairs that neither has seen; prints held-out figures
import sys, json, math, random; sys.path.insert(0,'/tmp/w/lead/nn'); sys.path.insert(0,'/tmp/w/wt/lead')
from data import *
import numpy as np
import newton.providers.pair_reader as pr
from newton.heart.statements import change_detection as cd
from newton.heart.statements.change_features import extract_features
from newton.heart.statements.habits import is_single_event
from newton.providers.minilm import MiniLM
from sklearn.linear_model import LogisticRegression
r = pr.PairReader(); mm = MiniLM(); rnd = random.Random(0)
def far(rows, each, k=40):
    olders = sorted({x[0] for x in rows}); ov = np.stack(mm.embed_now(olders)); idx = {o: i for i, o in enumerate(olders)}
    nv = mm.embed_now([x[1] for x in rows]); out = []
    for x, v in zip(rows, nv):
        near, same = ov @ v, ov @ ov[idx[x[0]]]
        good = [j for j in np.argsort(-near)[:k] if same[j] < .5][:8]
        out += [(olders[j], x[1], 0.0, 'far') for j in rnd.sample(good, min(each, len(good)))]
    return out
def feats(rows):
    texts = sorted({t for x in rows for t in x[:2]}); vec = dict(zip(texts, mm.embed_now(texts)))
    reads = r.score_pairs([x[:2] for x in rows]); out = []
    for x, rd in zip(rows, reads):
        a, b = vec[x[0]], vec[x[1]]; cos = float(a @ b)
        f = extract_features(x[0], x[1], cosine=cos, vector_score=cd.score_vectors(a, b))
        p = cd.compute_probability(f, cd.load_model())
        if f['restates'] or is_single_event(x[0], x[1]) or cos < cd.MIN_COSINE: p, rd = 0.0, -9.0
        p = min(max(p, 1e-6), 1 - 1e-6)
        out.append((min(max(math.log(p / (1 - p)), -3.0), 3.0), rd, cos))
    return np.array(out)
E_ = labelled(['/tmp/w/lead/pairs/train_e.yaml']); ev = labelled(['updates_everyday.yaml'])
cal = E_ + ev + far(E_, 6) + far(ev, 3)
X = feats(cal); t = np.array([c[2] for c in cal]); w = np.array([1.0 if c[3] != 'far' else .5 for c in cal])
lr = LogisticRegression(C=10).fit(X, t, sample_weight=w); print('trees, reader', lr.coef_[0], lr.intercept_[0])
P = lr.predict_proba(X)[:, 1]
np.savez('/tmp/w/lead/nn/cal.npz', X=X, t=t, far=np.array([c[3] == 'far' for c in cal]))
def show(name, rows, X):
    p = lr.predict_proba(X)[:, 1]
    for g in dict.fromkeys(x[3] for x in rows):
        for lab in (1., 0.):
            m = np.array([x[3] == g and x[2] == lab for x in rows])
            if m.any(): print(f'{name} {g} {"up" if lab else "comp"} {m.sum()}: ' + ' '.join(f'>={th}: {np.mean(p[m] >= th):.3f}' for th in (.5, .6, .7, .8, .85, .9, .95)))
show('cal', [(*c[:3], c[3] or 'E') for c in cal], X)
tests = {'held': labelled(['updates_heldout.yaml']), 'scen_held': scenarios('everyday_scenarios_heldout.yaml'), 'lives': [x for i, x in enumerate(lives()) if x[3] != 'lives_other' or i % 3 == 0]}
for k, rows in tests.items(): show(k, rows, feats(rows))
json.dump({'base': float(lr.intercept_[0]), 'trees': float(lr.coef_[0][0]), 'reader': float(lr.coef_[0][1])}, open('/tmp/w/lead/nn/fused.json', 'w'))
