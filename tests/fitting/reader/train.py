import sys, random, time, numpy as np, torch, os
from data import *
from transformers import AutoTokenizer, AutoModel
torch.set_num_threads(int(os.environ.get('TH','1'))); torch.manual_seed(0); random.seed(0)
BASE = sys.argv[1]; EPOCHS = int(sys.argv[2]); OUT = sys.argv[3]
tok = AutoTokenizer.from_pretrained(BASE)
class M(torch.nn.Module):
    def __init__(s):
        super().__init__(); s.enc = AutoModel.from_pretrained(BASE); s.head = torch.nn.Sequential(torch.nn.Dropout(.1), torch.nn.Linear(384, 1))
    def forward(s, **b):
        h = s.enc(**b).last_hidden_state; m = b['attention_mask'].unsqueeze(-1).float()
        return s.head((h * m).sum(1) / m.sum(1)).squeeze(-1)
def enc(rows): return tok([r[0] for r in rows], [r[1] for r in rows], truncation=True, max_length=96, padding=True, return_tensors='pt')
train = labelled(['updates_dev.yaml', 'updates_train.yaml'])
import glob
extra = sorted(glob.glob('/tmp/w/lead/pairs/train_*.yaml')) if '--extra' in sys.argv else []
train += labelled(extra)
train += scenarios('everyday_scenarios.yaml')
st, ds = stores(), dossiers()
up = [r for r in st if r[2]]; neg = [r for r in st if not r[2]]
random.shuffle(neg); random.shuffle(ds)
train += up
tests = {} if '--extra' not in sys.argv else {}
tests = {'everyday': labelled(['updates_everyday.yaml']), 'held': labelled(['updates_heldout.yaml']), 'scen_held': scenarios('everyday_scenarios_heldout.yaml'), 'lives': lives(), 'ab': labelled(['/tmp/w/lead/pairs/train_a.yaml', '/tmp/w/lead/pairs/train_b.yaml'])}
print(len(train), 'labelled', sum(r[2] for r in train), len(neg), len(ds), flush=True)
NEG = int(os.environ.get('NEG', 4000))
def far_negatives(rows, each):
    '''Pairs of a newer text with near, but other, older texts of the same source.'''
    from transformers import AutoModel
    e = AutoModel.from_pretrained(BASE).eval()
    def vec(ts):
        out = []
        with torch.no_grad():
            for i in range(0, len(ts), 64):
                b = tok(ts[i:i+64], truncation=True, max_length=96, padding=True, return_tensors='pt'); h = e(**b).last_hidden_state; mk = b['attention_mask'].unsqueeze(-1).float()
                out.append(torch.nn.functional.normalize((h * mk).sum(1) / mk.sum(1), dim=1))
        return torch.cat(out).numpy()
    olders = sorted({r[0] for r in rows}); ov = dict(zip(olders, vec(olders))); om = np.stack([ov[o] for o in olders])
    nv = vec([r[1] for r in rows]); out = []
    for r, v in zip(rows, nv):
        near = om @ v; same = om @ ov[r[0]]
        good = [j for j in np.argsort(-near)[:40] if same[j] < .5][:6]
        for j in random.sample(good, min(each, len(good))): out.append((olders[j], r[1], 0.0, 'far'))
        out.append((random.choice(olders), r[1], 0.0, 'far'))
    return out

if '--extra' in sys.argv: tests = {k: v for k, v in tests.items() if k not in ('ab',)}
L0 = labelled(['updates_dev.yaml', 'updates_train.yaml']); L1 = labelled(extra)
far0 = far_negatives(L0, 2); far1 = far_negatives(L1, 3); print(len(far0), len(far1), flush=True); print(far1[:6])
tests['lives'] = [r for i, r in enumerate(tests['lives']) if r[3] != 'lives_other' or i % 5 == 0]
m = M(); FR=int(os.environ.get('FREEZE','3'))
for p in m.enc.embeddings.parameters(): p.requires_grad=False
for l in m.enc.encoder.layer[:FR]:
    for p in l.parameters(): p.requires_grad=False
opt = torch.optim.AdamW([{'params': [p for p in m.enc.parameters() if p.requires_grad], 'lr': 1e-4}, {'params': m.head.parameters(), 'lr': 5e-4}], weight_decay=.01)
BS = 32; steps = EPOCHS * (len(train) + NEG + 4200) // BS; sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda i: min(1, (i + 1) / 60) * max(0, 1 - i / steps))
def evaluate():
    m.eval(); res = {}
    with torch.no_grad():
        for k, rows in tests.items():
            p = []
            for i in range(0, len(rows), 64): p.append(torch.sigmoid(m(**enc(rows[i:i+64]))).numpy())
            p = np.concatenate(p); t = np.array([r[2] for r in rows]); g = np.array([r[3] for r in rows])
            for name in dict.fromkeys(g):
                q = p[g == name]; tt = t[g == name]
                for lab in (1, 0):
                    if (tt == lab).any():
                        z = q[tt == lab]; res[f'{k}/{name}/{"up" if lab else "comp"}'] = f'{len(z)}: >.9 {np.mean(z>=.9):.3f} .5-.9 {np.mean((z<.9)&(z>=.5)):.3f}'
    m.train(); return res
t0 = time.time(); step = 0
for ep in range(EPOCHS):
    rows = train + random.sample(neg, NEG * 3 // 4) + random.sample(ds, NEG // 4) + random.sample(far0, 1500) + random.sample(far1, 2700)
    random.shuffle(rows)
    # buckets by length
    chunks = [sorted(rows[i:i + BS * 20], key=lambda r: len(r[0]) + len(r[1])) for i in range(0, len(rows), BS * 20)]
    batches = [c[i:i + BS] for c in chunks for i in range(0, len(c), BS)]; random.shuffle(batches)
    tot = 0
    for b in batches:
        loss = torch.nn.functional.binary_cross_entropy_with_logits(m(**enc(b)), torch.tensor([r[2] for r in b]))
        opt.zero_grad(); loss.backward(); torch.nn.utils.clip_grad_norm_(m.parameters(), 1.); opt.step(); sched.step(); tot += loss.item(); step += 1
        if step % 50 == 0: print(step, steps, f'{tot / 50:.3f}', f'{time.time() - t0:.0f}s', flush=True); tot = 0
    for k, v in evaluate().items(): print('  ', ep, k, v, flush=True)
    torch.save(m.state_dict(), OUT)
