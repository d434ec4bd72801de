#!/usr/bin/env python3
"""idle.py FOXY h1|h1tls|h2|h2tls N: resident memory of N idle connections."""
import socket, ssl, subprocess, sys, time, os, re, resource, tempfile
resource.setrlimit(resource.RLIMIT_NOFILE,(resource.getrlimit(resource.RLIMIT_NOFILE)[1],)*2)
foxy, kind, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
d=tempfile.mkdtemp(prefix='idle')
subprocess.run(['openssl','req','-x509','-newkey','ec','-pkeyopt','ec_paramgen_curve:prime256v1','-nodes','-keyout',d+'/k.pem','-out',d+'/c.pem','-days','2','-subj','/CN=localhost'],check=True,capture_output=True)
import http.server, threading
class H(http.server.BaseHTTPRequestHandler):
    protocol_version='HTTP/1.1'
    def do_GET(s):
        s.send_response(200); s.send_header('Cache-Control','max-age=600'); s.send_header('Content-Length','5'); s.end_headers(); s.wfile.write(b'hello')
    def log_message(*a): pass
o=http.server.ThreadingHTTPServer(('127.0.0.1',0),H); threading.Thread(target=o.serve_forever,daemon=True).start()
op=o.server_port
p=subprocess.Popen([foxy,'serve','--listen','127.0.0.1:13128','--listen-tls','127.0.0.1:13129','--tls-certificate',d+'/c.pem','--tls-key',d+'/k.pem','--admin','127.0.0.1:13130','--size','64M','--store',d+'/cache','--allow-destination','127.0.0.0/8'] ,stdout=open(d+'/out','w'),stderr=subprocess.STDOUT,cwd=d)
time.sleep(2)
if p.poll() is not None: print(open(d+'/out').read()); sys.exit(1)
def rss(): return int(re.search(r'VmRSS:\s+(\d+)',open(f'/proc/{p.pid}/status').read())[1])
ctx=ssl.create_default_context(); ctx.check_hostname=False; ctx.verify_mode=ssl.CERT_NONE
if kind=='h2tls': ctx.set_alpn_protocols(['h2'])
def hp(s): b=s.encode(); return bytes([len(b)])+b
def h2req():
    block=bytes([0x82,0x86])+bytes([0x01])+hp(f'127.0.0.1:{op}')+bytes([0x04])+hp('/x')
    return b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'+bytes([0,0,0,4,0,0,0,0,0])+len(block).to_bytes(3,'big')+bytes([1,5,0,0,0,1])+block
def one():
    s=socket.create_connection(('127.0.0.1',13129 if 'tls' in kind else 13128))
    if 'tls' in kind: s=ctx.wrap_socket(s)
    if kind.startswith('h2'):
        s.sendall(h2req());
        got=b''
        while b'hello' not in got:
            r=s.recv(4096)
            if not r: raise Exception(got)
            got+=r
        s.sendall(bytes([0,0,0,4,1,0,0,0,0]))
    else:
        s.sendall(f'GET http://127.0.0.1:{op}/x HTTP/1.1\r\nHost: 127.0.0.1:{op}\r\n\r\n'.encode())
        got=b''
        while b'hello' not in got: got+=s.recv(4096)
    return s
keep=[one() for _ in range(200)]
time.sleep(4); a=rss()
keep+=[one() for _ in range(n)]
b0=rss(); time.sleep(6); b=rss()
print(kind, 'KiB each: busy %.2f idle %.2f'%((b0-a)/n,(b-a)/n), a, b, flush=True)
p.terminate(); p.wait(10)
os._exit(0)
