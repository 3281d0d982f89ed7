//! Implements regular expressions in Go's syntax: [`parse`] parses a pattern as `regexp/syntax` does, with its errors, and returns the
//! form that `regex-automata` compiles. Matching takes time linear in the length of the string.

mod class;
mod escape;
mod parse;
mod parts;
mod sets;
mod text;

pub use self::parts::PatternPart;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use regex_automata::meta::{Config, Regex};
use regex_automata::nfa::thompson::WhichCaptures;

use crate::limits::{MAX_PATTERN_BYTES, PATTERN_MAKING};
use crate::value::EvalError;

/// Bytes that one compiled pattern may take: 280 copies of a class of all letters fit. In Go a copy takes forty bytes, so that a
/// thousand of them are no matter there; here it takes fifty kilobytes, and four times as many while the pattern is
/// compiled, for which a request may take no more than 64 MiB.
const SIZE_LIMIT: usize = MAX_PATTERN_BYTES / PATTERN_MAKING;

/// Bytes of compiled patterns that a thread keeps. Expressions come with few, constant patterns; a flood of them from
/// data must not fill the memory.
const CACHE_SIZE: usize = 32 << 20;

/// Bytes of the quickest form of a pattern, which not every pattern has.
const ONE_PASS_LIMIT: usize = 1 << 20;

#[derive(Default)]
struct Cache {
    by_pattern: HashMap<Box<str>, Regex>,
    size: usize,
}

thread_local! {
    static CACHE: RefCell<Cache> = RefCell::default();
}

/// Returns the compiled form of a pattern.
///
/// # Errors
///
/// Go's message: `` error parsing regexp: missing closing ): `(` ``.
pub(crate) fn compile(pattern: &str) -> Result<Regex, EvalError> {
    CACHE.with_borrow_mut(|cache| {
        if let Some(regex) = cache.by_pattern.get(pattern) {
            return Ok(regex.clone());
        }
        let regex =
            build(pattern, WhichCaptures::All, SIZE_LIMIT).map_err(|unbuilt| unbuilt.told(pattern))?;
        cache.keep(pattern, &regex);
        Ok(regex)
    })
}

impl Cache {
    /// Clears the cache when the patterns are too large together; one that is too large alone is not cached.
    fn keep(&mut self, pattern: &str, regex: &Regex) {
        let size = regex.memory_usage().saturating_add(pattern.len());
        if size > CACHE_SIZE {
            return;
        }
        self.size = self.size.saturating_add(size);
        if self.size > CACHE_SIZE {
            self.by_pattern.clear();
            self.size = size;
        }
        self.by_pattern.insert(pattern.into(), regex.clone());
    }
}

/// A compiled pattern in Go's syntax, shared by equal ones: the `pattern` of a schema.
///
/// ```
/// let digits = admit_cel::GoRegex::new(r"^\d+$").unwrap();
/// assert!(digits.is_match("12") && !digits.is_match("٣"));
/// assert!(digits.size() > 0);
/// assert_eq!(admit_cel::GoRegex::new("(").unwrap_err().to_string(), "error parsing regexp: missing closing ): `(`");
/// ```
#[derive(Clone, Debug)]
pub struct GoRegex(Arc<Regex>);

/// The compiled form of a pattern as long as someone has it, or nothing. Whoever wants it meanwhile waits.
type Shared = Arc<Mutex<Weak<Regex>>>;

/// The compiled patterns, by text. One with large classes takes tens of megabytes, and definitions repeat theirs: in fields, in
/// versions, and across definitions.
struct Patterns {
    by_text: BTreeMap<Box<str>, Shared>,
    /// At this size, unused patterns are dropped. It is then set to twice the rest, so that searching takes no more time than adding.
    full: usize,
}

static PATTERNS: Mutex<Patterns> = Mutex::new(Patterns { by_text: BTreeMap::new(), full: FEW });

/// Up to this number, all patterns are kept.
const FEW: usize = 1024;

impl GoRegex {
    /// Compiles a pattern, or shares an equal one.
    ///
    /// # Errors
    ///
    /// Go's error message.
    pub fn new(pattern: &str) -> Result<Self, EvalError> {
        Self::within(pattern, SIZE_LIMIT).map_err(|unbuilt| unbuilt.told(pattern))
    }

    /// Like [`Self::new`], with a limit of `limit` bytes if the pattern is not compiled yet.
    pub(crate) fn within(pattern: &str, limit: usize) -> Result<Self, Unbuilt> {
        let shared = shared(pattern);
        let mut kept = shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(regex) = kept.upgrade() {
            return Ok(Self(regex));
        }
        // Whether a pattern matches does not depend on capture groups.
        let regex = Arc::new(build(pattern, WhichCaptures::None, limit.min(SIZE_LIMIT))?);
        *kept = Arc::downgrade(&regex);
        Ok(Self(regex))
    }

    /// Whether the pattern matches anywhere in the string.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// Bytes of memory that it takes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.memory_usage()
    }
}

fn shared(pattern: &str) -> Shared {
    let mut patterns = PATTERNS.lock().unwrap_or_else(PoisonError::into_inner);
    let Patterns { by_text, full } = &mut *patterns;
    if let Some(shared) = by_text.get(pattern) {
        return Arc::clone(shared);
    }
    if by_text.len() >= *full {
        // A pattern that is being compiled is locked, and in use by that thread.
        by_text.retain(|_, shared| {
            Arc::strong_count(shared) > 1 || shared.lock().is_ok_and(|regex| regex.strong_count() > 0)
        });
        *full = by_text.len().saturating_mul(2).max(FEW);
    }
    Arc::clone(by_text.entry(pattern.into()).or_default())
}

/// Why a pattern could not be compiled.
#[derive(Debug)]
pub(crate) enum Unbuilt {
    /// It is invalid; the error is in Go's words.
    Invalid(EvalError),
    /// It takes more than it may.
    TooLarge,
}

impl Unbuilt {
    /// Returns the error in Go's words.
    fn told(self, pattern: &str) -> EvalError {
        match self {
            Self::Invalid(error) => error,
            Self::TooLarge => refusal(text::Error::too_large(pattern)),
        }
    }
}

fn refusal(error: text::Error<'_>) -> EvalError {
    EvalError::other(format!("error parsing regexp: {error}"))
}

/// Whether a text is a valid pattern, of whatever size.
pub(crate) fn is_pattern(text: &str) -> bool {
    parse::parse(text).is_ok()
}

fn build(pattern: &str, captures: WhichCaptures, limit: usize) -> Result<Regex, Unbuilt> {
    let hir = parse::parse(pattern).map_err(|error| Unbuilt::Invalid(refusal(error)))?;
    let config = Config::new()
        .nfa_size_limit(Some(limit))
        .onepass_size_limit(Some(ONE_PASS_LIMIT))
        .which_captures(captures);
    Regex::builder().configure(config).build_from_hir(&hir).map_err(|_| Unbuilt::TooLarge)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{GoRegex, compile};

    #[test]
    fn equal_patterns_are_compiled_once_while_one_is_there() {
        let pattern = "^shared[0-9]{1,63}$";
        let (first, second) = (GoRegex::new(pattern).unwrap(), GoRegex::new(pattern).unwrap());
        assert!(Arc::ptr_eq(&first.0, &second.0) && first.is_match("shared12") && !second.is_match("shared"));
        let weak = Arc::downgrade(&first.0);
        drop((first, second));
        assert!(weak.upgrade().is_none());
        assert!(GoRegex::new(pattern).unwrap().is_match("shared1"));
    }

    #[test]
    fn matches_as_go_does() {
        for (pattern, text, found) in [
            (r"\d", "٣", None),
            (r"\w+", "é_a1", Some("_a1")),
            (r"\Q.\E+", "a..b", Some("..")),
            (r"(?P<x>a)(?<x>b)", "ab", Some("ab")),
            (r"a$", "a\n", None),
            (r"(?m)a$", "a\nb", Some("a")),
            (r"a.b", "a\nb", None),
            (r"(?s)a.b", "a\nb", Some("a\nb")),
            (r"(?i)straße", "STRAßE", Some("STRAßE")),
            (r"(?i)k", "\u{212a}", Some("\u{212a}")),
            (r"(?U)a+", "aaa", Some("a")),
            (r"(?U)a+?", "aaa", Some("aaa")),
            (r"[[:alpha:]]+", "1ab2", Some("ab")),
            (r"[^[:^alpha:]]+", "1ab2", Some("ab")),
            (r"[]a]+", "x]a", Some("]a")),
            (r"[a\-z]+", "b-z", Some("-z")),
            (r"\p{Greek}+", "aαβ", Some("αβ")),
            (r"\pL", "1é", Some("é")),
            (r"\P{^Greek}", "aα", Some("α")),
            (r"\p{lower-case_ Letter}", "1Aé", Some("é")),
            (r"\p{Cs}|\P{Surrogate}", "a", Some("a")),
            (r"\p{thai}", "aก", Some("ก")),
            (r"a{,2}", "a{,2}", Some("a{,2}")),
            (r"a{2}", "aaa", Some("aa")),
            (r"x*", "baaac", Some("")),
            (r"\x41\x{42}\103", "ABC", Some("ABC")),
            (r"\bfoo\b", "a foo b", Some("foo")),
            (r"(a|)(b|c)?\z", "ab", Some("ab")),
            (r"^(?:[a-z0-9]+|x)$", "abc9", Some("abc9")),
        ] {
            let regex = compile(pattern).unwrap();
            assert_eq!(regex.find(text).map(|found| &text[found.range()]), found, "{pattern} on {text}");
        }
    }

    #[test]
    fn errors_are_worded_as_go_words_them() {
        for (pattern, error) in [
            ("(", "missing closing ): `(`"),
            (")", "unexpected ): `)`"),
            ("a|(b", "missing closing ): `a|(b`"),
            ("[", "missing closing ]: `[`"),
            ("x[a", "missing closing ]: `[a`"),
            ("*", "missing argument to repetition operator: `*`"),
            ("a|*", "missing argument to repetition operator: `*`"),
            ("(*a)", "missing argument to repetition operator: `*`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("a*+", "invalid nested repetition operator: `*+`"),
            ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("a{2,1}", "invalid repeat count: `{2,1}`"),
            ("(a{100}){100}", "invalid repeat count: `{100}`"),
            (r"\", "trailing backslash at end of expression: ``"),
            (r"\y", r"invalid escape sequence: `\y`"),
            (r"\8", r"invalid escape sequence: `\8`"),
            (r"\1", r"invalid escape sequence: `\1`"),
            (r"\C", r"invalid escape sequence: `\C`"),
            (r"[\Q]", r"invalid escape sequence: `\Q`"),
            (r"\p{Foo}", r"invalid character class range: `\p{Foo}`"),
            (r"\p{Grek}", r"invalid character class range: `\p{Grek}`"),
            (r"\p{IsGreek}", r"invalid character class range: `\p{IsGreek}`"),
            (r"\pX", r"invalid character class range: `\pX`"),
            ("[b-a]", "invalid character class range: `b-a`"),
            ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
            ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
            ("(?i", "invalid or unsupported Perl syntax: `(?i`"),
            ("(?P=x)", "invalid or unsupported Perl syntax: `(?P`"),
            ("(?P<n", "invalid named capture: `(?P<n`"),
            ("(?P<n->a)", "invalid named capture: `(?P<n->`"),
        ] {
            assert_eq!(compile(pattern).unwrap_err().to_string(), format!("error parsing regexp: {error}"));
        }
        assert!(compile(r"[\p{L}\p{N}]{1,253}").is_ok());
        let deep = format!("{}a{}", "(".repeat(5_000), ")".repeat(5_000));
        assert!(
            compile(&deep)
                .unwrap_err()
                .to_string()
                .starts_with("error parsing regexp: expression nests too deeply")
        );
    }
}
