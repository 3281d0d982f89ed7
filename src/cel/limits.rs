//! Defines the limits that Kubernetes sets, each with its source.

/// Runtime cost that one evaluation of one expression may reach (apiserver `pkg/apis/cel/config.go`).
pub const PER_CALL_LIMIT: u64 = 1_000_000;

/// Comprehension iterations between two looks at the caller's deadline (same file).
pub(crate) const INTERRUPT_CHECK_FREQUENCY: u32 = 100;

/// Nesting the parser accepts (cel-go `parser/parser.go`).
pub(crate) const MAX_RECURSION_DEPTH: u32 = 250;

/// Code points the parser accepts (same file).
pub(crate) const MAX_SOURCE_CODE_POINTS: usize = 100_000;

/// Errors the parser reports at most (same file).
pub(crate) const MAX_REPORTED_ERRORS: usize = 100;

/// Recoveries the parser attempts (same file).
pub(crate) const MAX_RECOVERY_ATTEMPTS: usize = 30;

/// Tokens one recovery may skip (same file).
pub(crate) const MAX_RECOVERY_LOOKAHEAD: usize = 256;

/// Bytes of memory that constant patterns may take together, those of all expressions and schemas of a policy or of a
/// definition: those that are compiled, equal ones once, and [`PATTERN_MAKING`] times the next one. Patterns in use have some
/// kilobytes; one that counts 63 letters of all languages has three megabytes, one that counts 253 of them fourteen. cel-go has no such
/// limit: there is room for thousands of such patterns in a file, for which no more than 64 MiB may be taken.
pub(crate) const MAX_PATTERN_BYTES: usize = 60 << 20;

/// A pattern takes so many times its size while it is compiled.
pub(crate) const PATTERN_MAKING: usize = 4;

/// The maximum number of expressions in a tree, with macros expanded. The limit of code points keeps every text without nested copying
/// macros well below it; cel-go has no such limit and would not finish.
pub(crate) const MAX_EXPRESSIONS: usize = 1_000_000;

/// Parts of the type of one expression: `map(string, list(int))` has four. cel-go has no such limit and would not answer
/// where types double; the nesting of literals reaches half of it.
pub(crate) const MAX_TYPE_PARTS: usize = 500;
