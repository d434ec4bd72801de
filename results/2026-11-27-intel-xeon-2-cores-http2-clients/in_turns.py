#!/usr/bin/env python3
"""ab.py ROUNDS NAME=BINARY|nginx ... : all subjects run; each round and work loads them in turns."""
import subprocess,sys,time,os,shutil,json,re
W='.'
WORKS=json.loads(os.environ.get('WORKS','[[1000,8,16,60000],[8000,8,16,40000],[1000,64,1,30000],[64000,8,16,8000]]'))
TICK=os.sysconf('SC_CLK_TCK'); TLS=os.environ.get('TLS')
def cpu(pids):
    t=0
    for p in pids:
        for task in os.listdir(f'/proc/{p}/task'):
            t+=int(open(f'/proc/{p}/task/{task}/schedstat').read().split()[0])
    return t/1e9
def hwm(pids): return sum(int(re.search(r'VmHWM:\s+(\d+)',open(f'/proc/{p}/status').read()).group(1)) for p in pids)//1024
def start(i,name,binary):
    if binary=='nginx':
        shutil.rmtree(W+'/ncache',ignore_errors=True)
        p=subprocess.Popen(['nginx','-c',W+'/nginx.conf'],stdout=subprocess.DEVNULL,stderr=subprocess.DEVNULL); time.sleep(1)
        kids=subprocess.run(['pgrep','-P',str(p.pid),'-f','worker process'],capture_output=True,text=True).stdout.split()
        return p,[int(k) for k in kids],9202
    store=f'{W}/store-{name}'; shutil.rmtree(store,ignore_errors=True); port=9220+i
    listen=['--listen','off','--listen-tls',f'127.0.0.1:{port}','--tls-certificate',W+'/c.pem','--tls-key',W+'/k.pem'] if TLS else ['--listen',f'127.0.0.1:{port}']
    p=subprocess.Popen([binary,'serve',*listen,'--admin','off','--origin','http://127.0.0.1:9100','--allow-destination','127.0.0.0/8','--store',store,'--size','256M','--memory','64M','--access-log','off','--what-if','off','--workers','2'],stdout=open(W+f'/foxy-{name}.out','w'),stderr=subprocess.STDOUT)
    time.sleep(1.5); return p,[p.pid],port
def load(port,size,c,m,n):
    s='s' if TLS else ''
    out=subprocess.run(['h2load','-t','1','-c',str(c),'-m',str(m),'-n',str(n),f'http{s}://127.0.0.1:{port}/b={size}'],capture_output=True,text=True,timeout=120).stdout
    return int(re.search(r'status codes: (\d+) 2xx',out).group(1)),float(re.search(r'([\d.]+) req/s',out).group(1)),re.search(r'time for request:\s+(.*)',out).group(1).split()
rounds=int(sys.argv[1]); subjects=[a.split('=') for a in sys.argv[2:]]
run=[]
try:
    for i,(name,b) in enumerate(subjects): run.append((name,*start(i,name,b)))
    for r in range(1,rounds+1):
        for size,c,m,n in WORKS:
            k=r%len(run)
            for name,p,pids,port in run[k:]+run[:k]:
                load(port,size,1,1,2); load(port,size,c,m,max(200,c))
                a=cpu(pids); ok,rate,t=load(port,size,c,m,n); b=cpu(pids)
                print(json.dumps(dict(round=r,subject=name,tls=bool(TLS),bytes=size,connections=c,streams=m,requests=n,ok=ok,cpu_us=round((b-a)*1e6/n,2),per_s=round(rate),slowest=t[1],mean=t[2],peak_rss_mb=hwm(pids))),flush=True)
finally:
    for _,p,_,_ in run: p.terminate()
    for _,p,_,_ in run: p.wait(20)
