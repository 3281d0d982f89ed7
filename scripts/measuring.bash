# For the scripts that measure, which source this first: it goes to the top of the repository, and says in one line what of
# the environment cannot be used.

case ${BINARIES:-/} in /*) ;; *) BINARIES=$PWD/$BINARIES ;; esac
cd "$(dirname "$0")/.."

# count NAME DEFAULT: prints the number that the variable NAME holds.
count() {
    local value=${!1:-$2}
    case $value in
        *[!0-9]* | 0* | ??????*)
            echo "$0: $1 is \`$value\`: a number from 1 to 99999 is needed" >&2
            exit 2
            ;;
    esac
    echo "$value"
}

# built PROGRAM…: sets $binaries to the folder that holds the programs: BINARIES, or that of a build as shipped, which is made.
built() {
    local program targets=()
    if [ -n "${BINARIES:-}" ]; then
        binaries=$BINARIES
        for program in "$@"; do
            [ -f "$binaries/$program" ] && [ -x "$binaries/$program" ] || {
                echo "$0: there is no program $binaries/$program; BINARIES names a folder with $*, or nothing" >&2
                exit 2
            }
        done
        return
    fi
    for program in "$@"; do
        case $program in
            examples/*) targets+=(--example "${program#examples/}") ;;
            *) targets+=(--bin "$program") ;;
        esac
    done
    cargo build --profile dist --locked --quiet -p admit "${targets[@]}"
    binaries=${CARGO_TARGET_DIR:-target}/dist
}
