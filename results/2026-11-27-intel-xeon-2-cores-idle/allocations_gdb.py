"""gdb script of allocations.py: notes each allocation that is not freed."""
import gdb, json, os
gdb.execute('set pagination off'); gdb.execute('set breakpoint pending on'); gdb.execute('set print thread-events off')
live={}
OUT='live.json'
def bt(n=14):
    f=gdb.newest_frame(); out=[]
    while f and len(out)<n:
        out.append(f.name() or '?'); f=f.older()
    return out
class Fin(gdb.FinishBreakpoint):
    def __init__(s, size, kind, stack):
        super().__init__(gdb.newest_frame(), internal=True); s.silent=True; s.size=size; s.kind=kind; s.stack=stack
    def stop(s):
        live[int(gdb.parse_and_eval('$rax'))&(2**64-1)]=(s.size,s.kind,s.stack); return False
    def out_of_scope(s): pass
class A(gdb.Breakpoint):
    def __init__(s,name,arg,kind): super().__init__(name,internal=True); s.silent=True; s.arg=arg; s.kind=kind
    def stop(s):
        if s.kind=='realloc': live.pop(int(gdb.parse_and_eval('$rdi'))&(2**64-1),None)
        try: Fin(int(gdb.parse_and_eval(s.arg)), s.kind, bt())
        except Exception as e: print('E',e)
        return False
class F(gdb.Breakpoint):
    def __init__(s,name): super().__init__(name,internal=True); s.silent=True
    def stop(s): live.pop(int(gdb.parse_and_eval('$rdi'))&(2**64-1),None); return False
A('*mi_malloc_aligned','$rdi','malloc'); A('*mi_zalloc_aligned','$rdi','zalloc'); A('*mi_realloc_aligned','$rsi','realloc'); F('*mi_free')
import subprocess
for l in subprocess.run("nm "+os.environ['FOXY']+" | grep -E ' [tT] .*OPENSSL_(malloc|free)$' | awk '{print $3}'",shell=True,capture_output=True,text=True).stdout.split():
    if l.endswith('malloc'): A('*'+l,'$rdi','openssl')
    else: F('*'+l)
class Dump(gdb.Command):
    def __init__(s): super().__init__('dumplive',gdb.COMMAND_USER)
    def invoke(s,a,t): json.dump(sorted(live.values(),key=lambda v:-v[0]),open(OUT,'w'))
Dump()
