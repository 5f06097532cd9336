import sys; src=open('/tmp/w/lead/nn/fuse.py').read(); exec(src.split("X = feats(cal)")[0])
tests = {'held': labelled(['updates_heldout.yaml']), 'scen_held': scenarios('everyday_scenarios_heldout.yaml'), 'lives': [x for i, x in enumerate(lives()) if x[3] != 'lives_other' or i % 3 == 0]}
dev = [x for x in labelled(['updates_dev.yaml'])]
import pickle, os
F='/tmp/w/lead/nn/feats.pkl'
if not os.path.exists(F):
    pickle.dump({'cal': (cal, feats(cal)), **{k: (v, feats(v)) for k, v in tests.items()}}, open(F,'wb'))
D=pickle.load(open(F,'rb'))
def exp(X):
    t,r,c=X.T; k=np.clip((c-.5)*2,0,1)
    return np.stack([t,r,c,t*k,r*k],1)
cal,X=D['cal']; y_=np.array([c[2] for c in cal]); far_=np.array([c[3]=='far' for c in cal])
for wfar in (.5,.15):
    for f,name in ((lambda X:X,'plain'),(exp,'cross')):
        lr=LogisticRegression(C=3,max_iter=2000).fit(f(X),y_,sample_weight=np.where(far_,wfar,1.))
        print('==',name,wfar,lr.coef_[0].round(3),lr.intercept_)
        for k,(rows,Z) in D.items():
            p=lr.predict_proba(f(Z))[:,1]
            for g in dict.fromkeys(x[3] for x in rows):
                for lab in (1.,0.):
                    m=np.array([x[3]==g and x[2]==lab for x in rows])
                    if m.any(): print(f'{k} {g or "E"} {"up" if lab else "comp"} {m.sum()}: '+' '.join(f'{th}: {np.mean(p[m]>=th):.3f}' for th in (.3,.4,.5,.6,.7,.8,.9)))
