import os, subprocess, sys, psycopg
from tests.http.tokens import create
def test_it(new_database):
    with new_database() as url, psycopg.connect(url, autocommit=True) as sql:
        tok = create(sql, "b", "admin")
        out=subprocess.run([sys.executable,"/tmp/s_ab_run.py"],env={**os.environ,"URL":url,"TOK":tok},capture_output=True,text=True)
        open("/tmp/s_ab.out","w").write(out.stdout+out.stderr[-3000:])
