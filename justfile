# The daily words. `just` is optional: each recipe is one command that can be typed as it stands.

# Arguments reach collo as they were typed, quotes and all: just plan quickstart --where 'degree <= 2'
set positional-arguments

collo := "cargo run --quiet --"

# Show the recipes
default:
    @"{{ just_executable() }}" --justfile "{{ justfile() }}" --list --unsorted

# Measure an experiment, or finish an unfinished campaign: just run quickstart
[group('measure')]
run NAME *ARGS:
    {{ collo }} run "$@"

# Measure an experiment on the simulated GPU, which invents every number and says so: just sim small-7way-mps
[group('measure')]
sim NAME *ARGS:
    cargo build --quiet --package collo --package collo-simgpu
    cargo run --quiet --package collo-simgpu --bin sim -- run "$@"

# Five minutes on a real card: does everything work, and do the modes differ
[group('measure')]
gpu-smoke *ARGS:
    {{ collo }} run gpu-smoke "$@"

# Show the cells of an experiment, their order, the forecast, and what cannot run here
[group('measure')]
plan NAME *ARGS:
    {{ collo }} plan "$@"

# Show progress, and whether each GPU is in its original state
[group('measure')]
status *ARGS:
    {{ collo }} status "$@"

# Write the guideline report of a campaign
[group('conclude')]
report *ARGS:
    {{ collo }} report "$@"

# Compare two campaigns, or GPU generations, with a verdict per cell: just compare last-1 last
[group('conclude')]
compare *ARGS:
    {{ collo }} compare "$@"

# Run an experiment and compare it with its own history; experiments/nightly.toml if none is named
[group('conclude')]
nightly *ARGS:
    {{ collo }} nightly "$@"

# List campaigns; or experiments, workloads, modes, gpus, layouts
[group('stored')]
list *ARGS:
    {{ collo }} list "$@"

# Show a campaign, or one of its cells in full
[group('stored')]
show *ARGS:
    {{ collo }} show "$@"

# Check that a campaign is complete, attested and intact
[group('stored')]
verify *ARGS:
    {{ collo }} verify "$@"

# Delete old campaigns, never baselines; says what it would do, and does it with --yes
[group('stored')]
prune *ARGS:
    {{ collo }} prune "$@"

# Check this machine: GPUs, driver, MPS, MIG, permissions
[group('this machine')]
doctor *ARGS:
    {{ collo }} doctor "$@"

# Restore a GPU's original MIG and MPS state after a crash
[group('this machine')]
restore *ARGS:
    {{ collo }} restore "$@"

# Check a data set, or synthesize a stand-in: just data check cifar-10
[group('this machine')]
data *ARGS:
    {{ collo }} data "$@"

# List, show or check workloads: just workload check small
[group('this machine')]
workload *ARGS:
    {{ collo }} workload "$@"

# Write the built-in experiments, workloads and MIG profiles: just init DIR
[group('this machine')]
init *ARGS:
    {{ collo }} init "$@"

# Export, assert, apply or clear a MIG layout: just mig assert sevenths
[group('this machine')]
mig *ARGS:
    {{ collo }} mig "$@"

# Install a release build, for real campaigns (a quarter of an hour on two cores), and the simulated GPU for `collo --simulate MODEL`
[group('this machine')]
install:
    cargo install --locked --path harness/cli
    harness/simgpu/install

# Pass every test, the Python ones included
[group('develop')]
test *ARGS:
    cargo test --workspace "$@"

# Print lines by package and room, circles, repeated names and lists; `just house lower` lowers the ceilings to them
[group('develop')]
house *ARGS:
    cargo run --quiet --package collo-house -- "$@"

# What CI checks: format, lints, every test
[group('develop')]
check:
    .ci/run

# Train every workload with every setting on a GPU that nobody else uses, an hour: the first, or CUDA_VISIBLE_DEVICES
[group('develop')]
gpu-tests:
    cargo build
    cargo test --package collo-workloads --test python_tests -- --ignored --nocapture

# Print the benchmarks' figures and write target/bench/NAME.json: just bench [--against FOLDER] [NAME]
[group('develop')]
bench *NAMES:
    cargo build --release --package collo-simgpu
    case " $* " in *" report "* | *" verdicts "*) cargo bench --package collo-report --no-run ;; esac
    cargo run --release --package collo-bench -- "$@"

# Attack collo: `just torture hostile [NAME …]` tries the catalogue; `just torture 1000` kills it so often at random instants, and feeds its parsers nonsense, a million damaged files (`COLLO_INPUTS=10000` for fewer)
[group('develop')]
torture WHAT="50" *NAMES:
    cargo build --package collo-simgpu
    if [ "{{ WHAT }}" = hostile ]; then shift; \
        COLLO_HOSTILE="$*" cargo test --package collo --test command -- hostile:: hosting::whoever --ignored --nocapture; \
    else \
        COLLO_TORTURE={{ WHAT }} cargo test --package collo --test command torture:: -- --ignored --nocapture && \
        cargo test --package collo-sample --lib fuzz_ -- --ignored --nocapture && \
        cargo test --package collo-report --test reports -- damage:: --ignored --nocapture; \
    fi

# Let libFuzzer search for inputs that a reader cannot bear, so many seconds each: `just fuzz`, `just fuzz 300 bundle trace`; needs `rustup toolchain install nightly` and `cargo install cargo-fuzz --locked`. What it finds is in harness/fuzz/fuzz/artifacts/NAME
[group('develop')]
fuzz SECONDS="60" *NAMES:
    #!/bin/sh
    set -eu
    [ $# = 0 ] || shift
    export CARGO_TARGET_DIR="$PWD/target/fuzz"
    cd harness/fuzz
    # The versions of the workspace, to which Cargo adds those of libFuzzer.
    [ fuzz/Cargo.lock -nt ../../Cargo.lock ] || cp ../../Cargo.lock fuzz/Cargo.lock
    [ $# -gt 0 ] || set -- $(ls corpus)
    for name; do
        found="$CARGO_TARGET_DIR/found/$name" artifacts="fuzz/artifacts/$name"
        mkdir -p "$found" "$artifacts"
        COLLO_READER="$name" cargo +nightly fuzz run read "$found" "corpus/$name" -- -artifact_prefix="$artifacts/" \
            -max_total_time={{ SECONDS }} -timeout=10 -malloc_limit_mb=500 -rss_limit_mb=2048
    done
