"""The committed raw declarations are those of the header.   header_test.py SOURCE"""
import subprocess
import sys

source = sys.argv[1]
made = subprocess.run([sys.executable, "-B", source + "/scripts/gen_python.py", source + "/include/tilelang.h"], check=True,
                      capture_output=True, text=True).stdout
with open(source + "/bindings/python/tilegen/_header.py", encoding="utf-8") as f:
    kept = f.read()
if made != kept:
    sys.exit("bindings/python/tilegen/_header.py is not what include/tilelang.h says; run\n"
             "  python3 scripts/gen_python.py include/tilelang.h -o bindings/python/tilegen/_header.py")
print("declarations agree")
