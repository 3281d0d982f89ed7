//! Models strings that functions derive from strings (lower case, trim, find). Each result is a variable,
//! as if the function were uninterpreted: equal arguments give equal results, and for constants the engine
//! computes the result.

use std::sync::LazyLock;

use admit_cel::{Bindings, Env, Evaluation, Mode, Program, Type, Value as Known, Version};

use super::document::World;
use super::inclusion;
use super::readings::{Derivation, Derived};
use super::regular;
use super::term::{Sort, Term};
use super::{Undecided, undecided};

/// The maximum number of derived strings in a query: all pairs of them are compared.
const MOST_DERIVED: usize = 200;
/// White space at the ends of strings, as a character class.
const SPACE: &str =
    r"\x09-\x0d\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}";

static FIND: LazyLock<Option<Program>> = LazyLock::new(|| {
    let env = Env::kubernetes(Version(1, 36), Mode::Stored);
    let env = env.with_variable("t", Type::String).with_variable("p", Type::String);
    env.program(&env.compile("t.find(p)").ok()?).ok()
});

/// Computes `find`: the first match of a pattern.
fn find(text: &str, pattern: &str) -> Option<String> {
    let arena = bumpalo::Bump::new();
    let program = FIND.as_ref()?;
    let mut bindings = Bindings::new(program);
    bindings.set("t", Known::String(text));
    bindings.set("p", Known::String(pattern));
    match program.eval(&bindings, &mut Evaluation::new(&arena)) {
        Ok(Known::String(found)) => Some(found.to_owned()),
        _ => None,
    }
}

impl Derivation {
    /// Computes the result for a constant string; `None` if unknown.
    fn of(&self, text: &str) -> Option<String> {
        match self {
            Self::Lower => Some(text.to_ascii_lowercase()),
            Self::Upper => Some(text.to_ascii_uppercase()),
            Self::Trimmed => Some(text.trim().to_owned()),
            Self::Found(pattern) => find(text, pattern),
        }
    }
}

impl World<'_> {
    /// Returns the term for the result of a function on a string.
    pub(super) fn derived(&mut self, derivation: &Derivation, text: Term) -> Result<Term, Undecided> {
        if let Some(constant) = self.terms.known_text(text).and_then(|text| derivation.of(text)) {
            return Ok(self.terms.text(&constant));
        }
        let same_kind = |known: &&Derived| known.derivation == *derivation;
        let earlier: Vec<Derived> = self.readings.derived.iter().filter(same_kind).cloned().collect();
        if let Some(known) = earlier.iter().find(|known| known.text == text) {
            return Ok(known.value);
        }
        if self.readings.derived.len() >= MOST_DERIVED {
            return Err(undecided("too many strings that are computed from other strings"));
        }
        let value = self.terms.variable(Sort::Text);
        for other in earlier {
            let same = self.terms.eq(text, other.text);
            let agrees = self.terms.eq(value, other.value);
            self.assume(same, agrees);
        }
        let always = self.terms.bool(true);
        let (length, own_length) = (self.terms.length(text), self.terms.length(value));
        let fits = match derivation {
            Derivation::Lower | Derivation::Upper => self.terms.eq(length, own_length),
            Derivation::Trimmed | Derivation::Found(_) => self.terms.le(own_length, length),
        };
        self.assume(always, fits);
        self.readings.derived.push(Derived { derivation: derivation.clone(), text, value });
        Ok(value)
    }

    /// Asserts the results for the constants of a query, and for which arguments a result is one of its
    /// constants.
    pub(super) fn settle_derived<'c>(
        &mut self,
        derived: &Derived,
        constants: impl Iterator<Item = &'c String>,
    ) {
        self.assume_derived(derived);
        for constant in constants {
            let text = self.terms.text(constant);
            let (of_text, of_value) =
                (self.terms.are_compared(derived.text, text), self.terms.are_compared(derived.value, text));
            if !of_text && !of_value {
                continue;
            }
            let Some(made) = derived.derivation.of(constant) else { continue };
            let value = self.terms.text(&made);
            if of_text {
                let is_it = self.terms.eq(derived.text, text);
                let becomes = self.terms.eq(derived.value, value);
                self.assume(is_it, becomes);
            }
            let sources = match derived.derivation {
                Derivation::Lower | Derivation::Upper => Some(regular::in_any_case(constant)),
                Derivation::Trimmed => regular::language(&format!("^[{SPACE}]*$"))
                    .ok()
                    .map(|space| format!("(re.++ {space} {} {space})", regular::exactly(constant))),
                Derivation::Found(_) => None,
            };
            if let Some(sources) = sources.filter(|_| of_value && made == *constant) {
                let always = self.terms.bool(true);
                let becomes = self.terms.eq(derived.value, value);
                let is_source = self.terms.in_language(derived.text, &sources);
                let agrees = self.terms.eq(becomes, is_source);
                self.assume(always, agrees);
            }
        }
    }

    /// Asserts what holds for the result of any argument.
    fn assume_derived(&mut self, derived: &Derived) {
        let always = self.terms.bool(true);
        let (text, value) = (derived.text, derived.value);
        let kept = match &derived.derivation {
            Derivation::Lower => "^[^A-Z]*$".to_owned(),
            Derivation::Upper => "^[^a-z]*$".to_owned(),
            Derivation::Trimmed => format!("^([^{SPACE}]((?s).*[^{SPACE}])?)?$"),
            Derivation::Found(pattern) => return self.assume_found(text, value, pattern),
        };
        let Ok(kept) = regular::language(&kept) else { return };
        let (is_kept, was_kept) = (self.terms.in_language(value, &kept), self.terms.in_language(text, &kept));
        self.assume(always, is_kept);
        let same = self.terms.eq(text, value);
        self.assume(was_kept, same);
        if derived.derivation == Derivation::Trimmed {
            let has = self.terms.contains(text, value);
            self.assume(always, has);
        }
    }

    /// A match is a substring of the argument. Without a match the result is empty; with one it is not,
    /// unless the pattern matches the empty string.
    fn assume_found(&mut self, text: Term, value: Term, pattern: &str) {
        let always = self.terms.bool(true);
        let nothing = self.terms.text("");
        let is_nothing = self.terms.eq(value, nothing);
        let has = self.terms.contains(text, value);
        self.assume(always, has);
        let Ok(language) = regular::language(pattern) else { return };
        let matches = self.terms.in_language(text, &language);
        let no_match = self.terms.not(matches);
        self.assume(no_match, is_nothing);
        // No match is empty if the empty string does not match, unless the pattern has anchors or
        // boundaries.
        if inclusion::is_within("^$", pattern) == Some(false) {
            let is_some = self.terms.not(is_nothing);
            self.assume(matches, is_some);
        }
    }
}
