#!/usr/bin/env python3
"""allocations.py FOXY h1|h1tls|h2|h2tls: allocations of one idle connection, with gdb."""
import sys, subprocess, time, os, signal, re, json, collections
here=os.path.dirname(os.path.abspath(__file__)); src=open(here+'/idle.py').read()
foxy,kind=os.path.abspath(sys.argv[1]),sys.argv[2]; os.environ['FOXY']=foxy
pre=src[:src.index('keep=[one()')]
pre=pre.replace("'serve',","'serve','--workers','1',").replace('13128','13228').replace('13129','13229').replace('13130','13230')
sys.argv=[sys.argv[0],foxy,kind,'1']
exec(pre)
keep=[one() for _ in range(20)]; time.sleep(3)
g=subprocess.Popen(['gdb','-q','-p',str(p.pid),'-x',here+'/allocations_gdb.py'],stdin=subprocess.PIPE,stdout=open('gdb.log','w'),stderr=subprocess.STDOUT,text=True,bufsize=1)
g.stdin.write('continue\n'); time.sleep(12)
keep.append(one()); print('opened'); time.sleep(15)
os.kill(p.pid, signal.SIGTRAP)
time.sleep(1)
g.stdin.write('dumplive\nkill\nquit\n'); time.sleep(3)
g.kill()
l=json.load(open('live.json'))
print('total',sum(x[0] for x in l),len(l))
skip=re.compile(r'^(mi_|alloc::|<alloc|__rust|__rdl|core::|hashbrown|std::alloc|<bytes|bytes::|OPENSSL|<core|mimalloc|<mimalloc|.*OPENSSL_)')
for s,k,st in l:
    if s>=40: print(s,k,' < '.join([x[:70] for x in st if not skip.match(x)][:5]))
try: p.kill()
except: pass
os._exit(0)
