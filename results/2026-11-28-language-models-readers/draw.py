"""Draws 50 comments, 20 paragraphs, 20 help texts and 10 error texts: python3 draw.py SEED, in a checkout."""
import random,re,glob,sys,os

seed=int(sys.argv[1])
R=random.Random(seed)
com=[]
for f in sorted(glob.glob('crates/*/src/**/*.rs',recursive=True)):
    L=open(f).read().split('\n'); i=0
    while i<len(L):
        m=re.match(r'\s*(///|//!|//)( |$)',L[i])
        if m:
            k=m.group(1); j=i; b=[]
            while j<len(L) and re.match(r'\s*'+re.escape(k)+r'( |$)',L[j]): b.append(L[j].strip()); j+=1
            com.append((f,i+1,'\n'.join(b))); i=j
        else: i+=1
par=[]
for f in sorted(glob.glob('docs/*.md')+['README.md','ARCHITECTURE.md','CONTRIBUTING.md']):
    t=open(f).read(); t=re.sub(r'```.*?```','',t,flags=re.S)
    for p in re.split(r'\n\s*\n',t):
        p=p.strip()
        if not p or p.startswith('#') or p.startswith('<!--'): continue
        if p.startswith('|'):
            rows=p.split('\n');
            for r in rows[2:]: par.append((f,rows[0]+'\n'+rows[1]+'\n'+r))
            continue
        par.append((f,p))
helps=[]
# settings docs
for f in sorted(glob.glob('crates/foxy/src/settings/rows/*.rs')):
    t=open(f).read()
    for m in re.finditer(r'((?:^ +///.*\n)+) +(\w+): (?:given|optional|switch|[a-z]+)[^\n]*?= "([\w.\-]+)"((?:[^;])*);',t,re.M):
        helps.append((f,m.group(3)+': '+' '.join(x.strip()[3:].strip() for x in m.group(1).strip().split('\n'))))
for f in sorted(glob.glob('crates/*/src/**/*.rs',recursive=True)):
    t=open(f).read()
    for m in re.finditer(r'\.(help|about|long_help|after_help)\(\s*"((?:[^"\\]|\\.)*)"',t,re.S):
        ctx=t[max(0,m.start()-200):m.start()]
        helps.append((f,re.sub(r'\\\n\s*','',m.group(2))+'   [ctx] '+' '.join(re.findall(r'Arg::new\("([^"]+)"|Command::new\("([^"]+)"',ctx)[-1] if re.findall(r'Arg::new\("([^"]+)"|Command::new\("([^"]+)"',ctx) else [])))
errs=[]
for f in sorted(glob.glob('crates/*/src/**/*.rs',recursive=True)):
    t=open(f).read()
    t2=t.split('#[cfg(test)]')[0]
    if '/tests' in f or f.endswith('_tests.rs'): continue
    for m in re.finditer(r'(?:Failure::\w+\(\s*(?:format!\(\s*)?|f\.write_str\(\s*|write!\(\s*f,\s*|Err\(\s*(?:format!\(\s*)?|=>\s*\{?\s*|Refusal::\w+\()"((?:[^"\\]|\\.)*)"',t2,re.S):
        s=re.sub(r'\\\n\s*','',m.group(1))
        if len(s.split())>=5: errs.append((f,t2[:m.start()].count('\n')+1,s))
print(len(com),len(par),len(helps),len(errs))
for name,pool,n in (('COMMENTS',com,50),('PARAGRAPHS',par,20),('HELPS',helps,20),('ERRORS',errs,10)):
    print('=====',name)
    for i,x in enumerate(R.sample(pool,n*int(sys.argv[2]) if len(sys.argv)>2 else n),1):
        print(f'--- {i} [{":".join(map(str,x[:-1]))}]\n{x[-1]}')
