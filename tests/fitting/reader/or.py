import pickle, numpy as np
D=pickle.load(open('/tmp/w/lead/nn/feats.pkl','rb'))
w=np.array([0.123,0.446,-0.221,1.245,0.422]); b=-0.4075
for name,fu,fp in (('shipped',lambda t,p,r:t>=2.197,lambda t,p,r:t>=.405),('comb.7/.5',lambda t,p,r:p>=.7,lambda t,p,r:p>=.5),('or .8',lambda t,p,r:(p>=.8)|((t>=2.197)&(r>-1)),lambda t,p,r:(p>=.6)|(t>=.405)&(r>-1)),('or .85',lambda t,p,r:(p>=.85)|((t>=2.197)&(r>-1)),lambda t,p,r:(p>=.6)|(t>=2.197)),('or .75',lambda t,p,r:(p>=.75)|((t>=2.197)&(r>-1)),lambda t,p,r:(p>=.55)|(t>=2.197))):
    print(name)
    for k,(rows,X) in D.items():
        t,r,c=X.T; kk=np.clip((c-.5)*2,0,1); p=1/(1+np.exp(-(np.stack([t,r,c,t*kk,r*kk],1)@w+b)))
        up=fu(t,p,r); pa=fp(t,p,r)|up
        print('  ',k,' '.join(f'{g or "E"}/{int(l)} {up[m].mean():.3f}+{pa[m].mean()-up[m].mean():.3f}' for g in dict.fromkeys(x[3] for x in rows) for l in (1.,0.) for m in [np.array([x[3]==g and x[2]==l for x in rows])] if m.any()))
