//! Builds terms of string functions, where CEL and the SMT-LIB theory of strings agree; positions count characters.

use super::{Op, Shape, Sort, Term, Terms};

/// The longest string concatenated at build time. The solver handles longer ones, so that repeated doubling stays cheap.
const MOST_JOINED: usize = 64 << 10;

impl Terms {
    /// Builds the length in code points.
    pub(in crate::prove) fn length(&mut self, text: Term) -> Term {
        match self.known_text(text).map(|text| text.chars().count()) {
            Some(count) => self.int(i128::try_from(count).unwrap_or(i128::MAX)),
            None => self.apply("str.len", Sort::Int, &[text]),
        }
    }

    pub(in crate::prove) fn text_lt(&mut self, left: Term, right: Term) -> Term {
        match (self.known_text(left), self.known_text(right)) {
            (Some(a), Some(b)) => {
                let less = a < b;
                self.bool(less)
            }
            _ if left == right => self.bool(false),
            _ => self.apply("str.<", Sort::Bool, &[left, right]),
        }
    }

    pub(in crate::prove) fn join(&mut self, left: Term, right: Term) -> Term {
        match (self.known_text(left), self.known_text(right)) {
            (Some(a), Some(b)) if a.len().saturating_add(b.len()) <= MOST_JOINED => {
                let joined = format!("{a}{b}");
                self.text(&joined)
            }
            (Some(""), _) => right,
            (_, Some("")) => left,
            _ => self.apply("str.++", Sort::Text, &[left, right]),
        }
    }

    fn text_test(
        &mut self,
        name: &'static str,
        parts: [Term; 2],
        test: fn(&str, &str) -> bool,
        on: [usize; 2],
    ) -> Term {
        let known = |at: usize| parts.get(at).and_then(|part| self.known_text(*part));
        if let (Some(text), Some(part)) = (known(on[0]), known(on[1])) {
            let holds = test(text, part);
            return self.bool(holds);
        }
        self.apply(name, Sort::Bool, &parts)
    }

    pub(in crate::prove) fn starts_with(&mut self, text: Term, part: Term) -> Term {
        self.text_test("str.prefixof", [part, text], |text, part| text.starts_with(part), [1, 0])
    }

    pub(in crate::prove) fn ends_with(&mut self, text: Term, part: Term) -> Term {
        self.text_test("str.suffixof", [part, text], |text, part| text.ends_with(part), [1, 0])
    }

    pub(in crate::prove) fn contains(&mut self, text: Term, part: Term) -> Term {
        self.text_test("str.contains", [text, part], |text, part| text.contains(part), [0, 1])
    }

    /// Builds membership of a string in a regular language, given in the solver's notation.
    pub(in crate::prove) fn in_language(&mut self, text: Term, language: &str) -> Term {
        self.make(Shape::Apply(Op::InLanguage(language.into()), [text].into()))
    }

    /// Builds the substring of at most `count` characters from a position on; empty if the position is out of range.
    pub(in crate::prove) fn part(&mut self, text: Term, from: Term, count: Term) -> Term {
        if let (Some(text), Some(from), Some(count)) =
            (self.known_text(text), self.known_int(from), self.known_int(count))
        {
            let place = |number: i128| usize::try_from(number).ok();
            let part: String = match (place(from), place(count)) {
                (Some(from), Some(count)) => text.chars().skip(from).take(count).collect(),
                _ => String::new(),
            };
            return self.text(&part);
        }
        self.apply("str.substr", Sort::Text, &[text, from, count])
    }

    /// Builds the first position of a nonempty substring at or after `from`; -1 if there is none.
    pub(in crate::prove) fn position(&mut self, text: Term, part: Term, from: Term) -> Term {
        if let (Some(text), Some(part), Some(0)) =
            (self.known_text(text), self.known_text(part), self.known_int(from))
        {
            let before = text.split_once(part).map(|(before, _)| before.chars().count());
            let found = before.and_then(|count| i128::try_from(count).ok()).unwrap_or(-1);
            return self.int(found);
        }
        self.apply("str.indexof", Sort::Int, &[text, part, from])
    }

    /// Builds the string with the first occurrence of a nonempty substring replaced, or all of them.
    pub(in crate::prove) fn replaced(&mut self, text: Term, parts: [Term; 2], all: bool) -> Term {
        let [old, new] = parts;
        if let (Some(text), Some(old), Some(new)) =
            (self.known_text(text), self.known_text(old), self.known_text(new))
            && text.len().saturating_mul(new.len().max(1)) <= MOST_JOINED
        {
            let replaced = if all { text.replace(old, new) } else { text.replacen(old, new, 1) };
            return self.text(&replaced);
        }
        self.apply(if all { "str.replace_all" } else { "str.replace" }, Sort::Text, &[text, old, new])
    }

    /// Builds the number that decimal digits denote; -1 for any other string.
    pub(in crate::prove) fn natural(&mut self, text: Term) -> Term {
        self.apply("str.to_int", Sort::Int, &[text])
    }

    /// Builds the decimal digits of a nonnegative number.
    pub(in crate::prove) fn digits(&mut self, number: Term) -> Term {
        match self.known_int(number) {
            Some(known) if known >= 0 => self.text(&known.to_string()),
            _ => self.apply("str.from_int", Sort::Text, &[number]),
        }
    }
}
