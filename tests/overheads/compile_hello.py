"""What a program pays for `#include <aloft/aloft.h>`.

  compile_hello.py COMPILER FOLDER ...     FOLDER: of headers, as -I takes it

hello.cpp is compiled without optimisation. Its seconds and its lines are printed; what is held to a ceiling
is the memory that the compiler asks for while it does so, which follows the templates that headers make it
instantiate and is the same on a busy machine as on a quiet one. Where a header must bring more, the ceiling
moves, and the reason belongs in the commit. Exit 77, which ctest shows as skipped: a compiler that does not
say what memory it took (-ftime-report).
"""
import pathlib
import re
import subprocess
import sys
import time

HELLO = pathlib.Path(__file__).with_name("hello.cpp")
CEILING_MIB = 438  # a revision that brought all of the compiler's insides: 627
SKIPPED = 77


def run(compiler, folders, *options):
    done = subprocess.run([compiler, "-std=c++20", "-O0", *(f"-I{f}" for f in folders), *options, HELLO],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"hello.cpp does not compile: {done.stderr}")
    return done


def main():
    compiler, *folders = sys.argv[1:]
    lines = sum(1 for line in run(compiler, folders, "-E").stdout.splitlines()
                if line.strip() and not line.startswith("#"))
    begin = time.monotonic()
    run(compiler, folders, "-c", "-o", "/dev/null")
    seconds = time.monotonic() - begin
    report = run(compiler, folders, "-c", "-o", "/dev/null", "-ftime-report").stderr
    total = re.search(r"(?m)^ TOTAL .* (\d+)M$", report)
    if not total:
        print("skipped: the compiler does not report the memory it takes")
        sys.exit(SKIPPED)
    print(f"hello.cpp: {seconds:.1f} s, {lines:,} lines, {total[1]} MiB of the compiler's memory")
    if int(total[1]) > CEILING_MIB:
        sys.exit(f"above {CEILING_MIB} MiB: a header that <aloft/aloft.h> needs brings more than it did\n"
                 "try: clang++ -ftime-trace shows which")


if __name__ == "__main__":
    main()
