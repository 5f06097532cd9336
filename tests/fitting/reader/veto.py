import pickle, numpy as np
D=pickle.load(open('/tmp/w/lead/nn/feats.pkl','rb'))
w=np.array([0.123,0.446,-0.221,1.245,0.422]); b=-0.4075
for vt in (None,(-.5,.8),(0,.75),(.5,.8)):
    print(vt)
    for k,(rows,X) in D.items():
        t,r,c=X.T; kk=np.clip((c-.5)*2,0,1); p=1/(1+np.exp(-(np.stack([t,r,c,t*kk,r*kk],1)@w+b)))
        up=p>=.7
        if vt: up&=~((t<vt[0])&(c>vt[1]))
        print('  ',k,' '.join(f'{g or "E"}/{int(l)} {up[m].mean():.3f}+{(p[m]>=.5).mean()-up[m].mean():.3f}' for g in dict.fromkeys(x[3] for x in rows) for l in (1.,0.) for m in [np.array([x[3]==g and x[2]==l for x in rows])] if m.any()))
