# shellcheck shell=bash disable=SC2034  # sourced by check, which uses the lists
# One function a check. Each prints to its log and returns nonzero when something is wrong;
# a line `N passed, N failed` in the output says how many tests it was, else it counts as one.

WORK=build-check
CHECK_PACKAGES=(curl g++ clang libclang-rt-14-dev llvm libcriterion-dev parallel python3-venv)
CHECK_MODULES=(numpy==2.4.6 safetensors==0.8.0)

# use_venv FOLDER MODULE…: a virtual environment with these modules comes first in PATH.
use_venv() {
    local folder=$1 stamp; shift
    stamp="$(python3 -V) $*"
    if [ "$(cat "$folder/stamp" 2>/dev/null)" != "$stamp" ]; then
        say "Python modules into $folder: $*"
        rm -rf "$folder"
        python3 -m venv "$folder"
        "$folder/bin/pip" install --quiet --disable-pip-version-check "$@"
        printf '%s\n' "$stamp" >"$folder/stamp"
    fi
    PATH=$PWD/$folder/bin:$PATH
}

# find_models: sets BERT_TEST_MODELS and says which real weights the tests will use.
find_models() {
    export BERT_TEST_MODELS=${BERT_TEST_MODELS:-$PWD/models}
    local small=$BERT_TEST_MODELS/all-MiniLM-L6-v2 found=() name
    if [ ! -f "$small/config.json" ]; then
        say "Fetching all-MiniLM-L6-v2"
        # shellcheck disable=SC2046  # a list of package names
        need_packages $(scripts/fetch_model --needs all-MiniLM-L6-v2)
        scripts/fetch_model all-MiniLM-L6-v2 "$small" || say "all-MiniLM-L6-v2 could not be fetched"
    fi
    for name in all-MiniLM-L6-v2 bert-base-uncased; do
        [ ! -f "$BERT_TEST_MODELS/$name/config.json" ] || found+=("$name")
    done
    say "Real weights: ${found[*]:-none, so tests that need them are skipped}"
}

# configure NAME COMPILER MESON_OPTION…: sets build-check/NAME up.
configure() {
    local folder=$WORK/$1 compiler=$2; shift 2
    [ -f "$folder/build.ninja" ] || CC=$compiler meson setup "$folder" -Dtests=true -Dwerror=true "$@"
}

# build NAME COMPILER MESON_OPTION…: all of it.
build() {
    configure "$@"
    ninja -C "$WORK/$1"
}

# run_tests NAME MESON_TEST_OPTION…: the tests of build-check/NAME, counted one by one.
run_tests() {
    local folder=$WORK/$1 status=0 log; shift
    rm -f "$folder"/meson-logs/testlog*.json
    meson test -C "$folder" --no-rebuild --print-errorlogs "$@" || status=$?
    for log in "$folder"/meson-logs/testlog*.json; do   # a wrapper's name is in it
        [ ! -f "$log" ] || scripts/count_tests "$log" || status=1
    done
    return $status
}

# tests_in_c NAME: those of build-check/NAME that are programs of ours, not scripts.
tests_in_c() {
    meson introspect --tests "$WORK/$1" | python3 -c 'import json, sys
for test in json.load(sys.stdin):
    if test["cmd"][0].startswith(sys.argv[1]): print(test["name"])' "$PWD/$WORK/$1/"
}

check_tree() { python3 tests/check_tree.py; }

check_includes() { python3 tests/check_includes.py; }

check_headers() {
    local n=0 header way
    for header in include/bert/*.h; do
        for way in "gcc -x c -std=c17" "clang -x c -std=c17" "g++ -x c++ -std=c++17" "clang++ -x c++ -std=c++17"; do
            printf '#include <bert/%s>\n' "${header##*/}" |
                $way -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -Iinclude -fsyntax-only -
            n=$((n + 1))
        done
    done
    printf '%d passed, 0 failed\n' "$n"
}

check_release() {
    build release gcc --prefix="$PWD/$WORK/prefix"
    run_tests release
}

# The tests also compile without Criterion, as the checks valgrind and tsan want them.
check_clang() {
    local file
    for file in tests/test_*.c tests/cli/test_*.c; do
        clang -std=c17 -Wall -Wextra -Wshadow -Werror -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -Itests/plain -Iinclude -Isrc -Itools \
            -fsyntax-only "$file"
    done
    build clang clang
    run_tests clang
}

check_sanitized() {
    build sanitized clang -Dbuildtype=debugoptimized -Db_sanitize=address,undefined -Db_lundef=false
    ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
        run_tests sanitized -t 5
}

check_symbols() {
    build release gcc --prefix="$PWD/$WORK/prefix"
    python3 tests/check_symbols.py $WORK/release/libbert.so
}

# check_install: what a C service does: install, compile against the prefix, run; shared and fully static.
check_install() {
    local prefix=$PWD/$WORK/prefix libs example model=tests/data/models/tiny-bert
    build release gcc --prefix="$prefix"
    rm -rf "$prefix"
    meson install -C $WORK/release --no-rebuild --quiet
    libs=$(dirname "$(find "$prefix" -name libbert.so)")
    export PKG_CONFIG_PATH=$libs/pkgconfig
    for example in embed threads service attention_by_hand; do
        # shellcheck disable=SC2046  # lists of flags
        gcc -std=c17 -Wall -Wextra -Werror -o $WORK/$example examples/$example.c $(pkg-config --cflags --libs bert)
        # shellcheck disable=SC2046
        gcc -std=c17 -static -o $WORK/$example-static examples/$example.c $(pkg-config --static --cflags --libs bert)
        LD_LIBRARY_PATH=$libs $WORK/$example $model <examples/meson.build >$WORK/$example.out
        $WORK/$example-static $model <examples/meson.build >$WORK/$example-static.out
        cmp $WORK/$example.out $WORK/$example-static.out
        cat $WORK/$example.out
    done
    LD_LIBRARY_PATH=$libs "$prefix/bin/bert" --version
    printf '9 passed, 0 failed\n'
}

check_fetch() { python3 tests/test_fetch_model.py; }

check_readme() {
    build release gcc --prefix="$PWD/$WORK/prefix"
    python3 tests/run_readme.py $WORK/release/tools/bert
}

# check_manual: what the ordinary suite leaves out where mandoc or zsh are not there.
check_manual() {
    need_packages man-db groff-base mandoc zsh
    build release gcc --prefix="$PWD/$WORK/prefix"
    (cd tests/cli && BERT=../../$WORK/release/tools/bert python3 main.py test_manual)
}

# Both of these: one process a test program (-Dplain_tests), which also leaves real weights alone; they would take an hour.
# What scripts do is run where they run our programs.

check_valgrind() {
    local memcheck='valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,indirect'
    export BERT_TEST_MODE=valgrind BERT_TEST_MODELS=
    need_packages valgrind
    build valgrind gcc -Dbuildtype=debugoptimized -Dplain_tests=true
    # shellcheck disable=SC2046  # a list of test names
    run_tests valgrind -t 30 --wrap="$memcheck" $(tests_in_c valgrind | grep -vx fpenv)   # it always rounds to nearest
    printf '#!/bin/sh\nexec %s %s "$@"\n' "$memcheck" "$PWD/$WORK/valgrind/tools/bert" >$WORK/bert-valgrind
    chmod +x $WORK/bert-valgrind
    (cd tests/cli && BERT=../../$WORK/bert-valgrind python3 main.py test_hostile_text)
}

# The examples that share one model between threads, a thousand rounds of test_threads, and of the command the server;
# the rest of it measures how fast things end.
check_tsan() {
    local example
    export BERT_TEST_ROUNDS=1000 BERT_TEST_MODELS= TSAN_OPTIONS=atexit_sleep_ms=0:history_size=4
    build tsan clang -Dbuildtype=debugoptimized -Db_sanitize=thread -Db_lundef=false -Dplain_tests=true
    for example in threads service; do
        clang -std=c17 -g -fsanitize=thread -Iinclude -o $WORK/$example-tsan examples/$example.c $WORK/tsan/libbert.so \
            -Wl,-rpath,"$PWD/$WORK/tsan"
        $WORK/$example-tsan tests/data/models/tiny-bert <scripts/checks.sh
    done
    # shellcheck disable=SC2046  # a list of test names
    run_tests tsan -t 10 $(tests_in_c tsan) service
    (cd tests/cli && BERT_TEST_MODE=TSAN BERT=../../$WORK/tsan/tools/bert python3 main.py test_serve test_serve_load)
}

# Two checks have it, of 4 GB: with other modules each would install it anew behind the other.
use_bertviz() { use_venv .venv-bertviz torch==2.13.0 bertviz==1.4.1 ipython==9.18.1 "${CHECK_MODULES[@]}"; }

check_bertviz() {
    use_bertviz
    build release gcc --prefix="$PWD/$WORK/prefix"
    python3 tests/check_bertviz.py $WORK/release/tools/bert tests/data/models/tiny-bert
}

# check_python: the wheel in a virtual environment that has numpy and nothing else; bertviz beside it.
check_python() {
    local wheel venv=$WORK/venv-python tests=bindings/python/tests
    build release gcc --prefix="$PWD/$WORK/prefix"
    wheel=$(scripts/build_wheel)
    python3 -m zipfile -l "$wheel" | grep '^libbert/libbert\.so '   # not in a folder for what fits every platform
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 "$wheel"
    export BERT=$PWD/$WORK/release/tools/bert PYTHONDONTWRITEBYTECODE=1
    "$venv/bin/python" -m unittest discover -s $tests
    use_bertviz
    PYTHONPATH=$(echo "$venv"/lib/python3*/site-packages) python3 $tests/bertviz_takes_it.py
}

# check_clients: bert serve and the clients that people have for such servers.
check_clients() {
    use_venv .venv-clients openai==3.57.0 huggingface_hub==2.4.0 numpy==2.4.6
    build release gcc --prefix="$PWD/$WORK/prefix"
    python3 tests/check_clients.py $WORK/release/tools/bert tests/data/models/tiny-bert \
        tests/data/models/tiny-bert-reranker
}

# check_page: the pages of attention and of ablation in Debian's Chromium.
check_page() {
    need_packages chromium chromium-driver fonts-dejavu-core
    build release gcc --prefix="$PWD/$WORK/prefix"
    python3 tests/check_page.py $WORK/release/tools/bert tests/data/models/tiny-bert
}

# fuzz_each SECONDS [TARGET…]: every fuzz target, or these, for so long. Ends at the first finding.
fuzz_each() {
    local seconds=$1 targets name dictionary n=0; shift
    configure fuzz clang -Dfuzz=true -Db_lundef=false
    targets=("$@")
    [ $# -gt 0 ] || mapfile -t targets < <(sed -n "s/^  '\([a-z_]*\)': \[.*/\1/p" tests/fuzz/meson.build)
    for name in "${targets[@]}"; do
        ninja -C $WORK/fuzz "tests/fuzz/fuzz_$name"
        mkdir -p "$WORK/corpus/$name"
        dictionary=tests/fuzz/dictionaries/$name.dict
        # shellcheck disable=SC2046  # folders and an option that may not be there
        $WORK/fuzz/tests/fuzz/fuzz_"$name" -max_total_time="$seconds" -print_final_stats=1 -max_len=16384 \
            -artifact_prefix=$WORK/ -verbosity=0 $([ ! -f "$dictionary" ] || printf -- '-dict=%s' "$dictionary") \
            "$WORK/corpus/$name" $(find tests/fuzz/seeds/"$name" -maxdepth 0 2>/dev/null) tests/data/hostile/*/ 2>&1 |
            tee "$WORK/fuzz_$name.log"
        printf 'figure: fuzz %s: %s executions in %d s\n' "$name" \
            "$(sed -n 's/^stat::number_of_executed_units: *//p' "$WORK/fuzz_$name.log")" "$seconds"
        n=$((n + 1))
    done
    printf '%d passed, 0 failed\n' "$n"
}

# check_spark: scripts/spark_encode.py under Spark, alone and on a cluster of processes, with tasks that fail once.
check_spark() {
    need_packages openjdk-17-jre-headless
    use_venv .venv-spark pyspark==3.5.6
    build release gcc --prefix="$PWD/$WORK/prefix"
    python3 tests/check_spark.py $WORK/release/tools/bert tests/data/models/tiny-bert
}

check_fuzz() { fuzz_each "${FUZZ_SECONDS:-60}"; }

check_bits() { scripts/check_bits; }

check_neon() {
    need_packages gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
    scripts/check_neon
}

check_coverage() {
    export BERT_TEST_MODE=coverage BERT_TEST_QUICK=1
    need_packages gcovr
    # Threads count in the same places: without atomic additions counts come out negative, and gcovr refuses them.
    build coverage gcc -Dbuildtype=debug -Db_coverage=true -Dc_args=-fprofile-update=atomic
    run_tests coverage -t 10
    gcovr --root . --object-directory $WORK/coverage --filter src/ --filter tools/ --json-summary $WORK/coverage.json
    scripts/judge_coverage $WORK/coverage.json
}

# lint_file FILE: no findings of clang-tidy (.clang-tidy says which) nor of gcc's analyzer.
lint_file() {
    local known=()
    # The library's files see tests/lint.h first; the command's see public headers only.
    case $1 in src/base/error.c) ;; src/*) known=(-include "$PWD/tests/lint.h") ;; esac
    clang-tidy -p $WORK/lint --quiet "${known[@]/#/--extra-arg=}" "$1" 2>&1 | { grep -v 'warnings generated' || true; }
    case $1 in src/kernels/x86/*) return ;; esac   # intrinsics, which need the flags of their instruction set
    # gcc 12 does not see that what is stored behind a pointer is freed by who holds it; LeakSanitizer does.
    gcc -std=c17 -O2 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -Iinclude -Isrc -Itools "${known[@]}" \
        -fanalyzer -Wno-analyzer-malloc-leak -Werror -S -o /dev/null "$1"
}

# lint: all of src/ and tools/ but the table that a script wrote and what is for arm; one file a core.
check_lint() {
    need_packages clang-tidy
    local files
    configure lint clang
    mapfile -t files < <(find src tools -name '*.c' ! -name unicode_tables.c ! -path '*/arm/*')
    export -f lint_file
    export WORK
    printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -I{} bash -c 'set -euo pipefail; lint_file {}'
    printf '%d passed, 0 failed\n' "${#files[@]}"
}

# long: the tests that take a few random moments or steps in the ordinary suite, at their full number.
check_long() {
    build release gcc --prefix="$PWD/$WORK/prefix"
    BERT_TEST_LONG=1 run_tests release -t 20 cli command_faults faults
}
