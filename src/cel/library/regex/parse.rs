//! Parses patterns, except for character classes. As in Go's parser, operands and open groups are on an explicit stack, so parsing does
//! not recurse; the height of the result is limited for code that walks it.

use regex_syntax::hir::{Dot, Hir, Look, Repetition};

use super::escape::{self, class_escape};
use super::text::{Error, next_char, up_to};
use super::{class, sets};

/// What `(?i)` and its like switch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flags {
    pub(super) fold_case: bool,
    multi_line: bool,
    dot_matches_newline: bool,
    swap_greed: bool,
}

/// Counted repetitions may copy their operand so many times in all.
const MAX_REPEAT: u32 = 1_000;

/// Nesting of the result. Go admits 1000; the compilers behind us recurse, and no real pattern comes near.
const MAX_HEIGHT: u32 = 250;

/// A part of the pattern that is read.
struct Operand {
    hir: Hir,
    /// The greatest product of counts on a way down.
    copies: u32,
    height: u32,
}

enum Item {
    Operand(Operand),
    Bar,
    /// An open group, with the flags to restore. Groups are not captured: no function returns them.
    Open(Flags),
}

struct Parser<'p> {
    pattern: &'p str,
    flags: Flags,
    stack: Vec<Item>,
}

type Parsed<'p, T> = Result<T, Error<'p>>;

/// Reads a pattern.
pub(super) fn parse(pattern: &str) -> Parsed<'_, Hir> {
    let mut parser = Parser { pattern, flags: Flags::default(), stack: Vec::new() };
    let mut rest = pattern;
    let mut last_repeat = None;
    while !rest.is_empty() {
        let (after, repeat) = parser.step(rest, last_repeat)?;
        (rest, last_repeat) = (after, repeat);
    }
    let operand = parser.close();
    if parser.stack.is_empty() { Ok(operand.hir) } else { Err(Error::new("missing closing )", pattern)) }
}

/// What is left after a step, and the repetition operator if the step read one.
type Step<'p> = (&'p str, Option<&'p str>);

impl<'p> Parser<'p> {
    fn step(&mut self, text: &'p str, last_repeat: Option<&'p str>) -> Parsed<'p, Step<'p>> {
        let (first, after) = next_char(text);
        let rest = match first {
            '(' if after.starts_with('?') => self.open_special(text)?,
            '(' => {
                self.stack.push(Item::Open(self.flags));
                after
            }
            '|' => {
                let operand = self.concatenate();
                self.stack.push(Item::Operand(operand));
                self.stack.push(Item::Bar);
                after
            }
            ')' => {
                self.close_group()?;
                after
            }
            '^' => self.look(if self.flags.multi_line { Look::StartLF } else { Look::Start }, after),
            '$' => self.look(if self.flags.multi_line { Look::EndLF } else { Look::End }, after),
            '.' => {
                let any = if self.flags.dot_matches_newline { Dot::AnyChar } else { Dot::AnyCharExceptLF };
                self.push(Hir::dot(any));
                after
            }
            '[' => {
                let (class, rest) = class::parse(text, self.flags.fold_case)?;
                self.push(sets::hir(class));
                rest
            }
            '*' | '+' | '?' | '{' => return self.step_repeat(first, text, last_repeat),
            '\\' => self.step_escape(text)?,
            literal => {
                self.literal(u32::from(literal));
                after
            }
        };
        Ok((rest, None))
    }

    fn step_repeat(
        &mut self,
        first: char,
        text: &'p str,
        last_repeat: Option<&'p str>,
    ) -> Parsed<'p, Step<'p>> {
        let (_, after) = next_char(text);
        let (min, max, after) = match first {
            '*' => (0, None, after),
            '+' => (1, None, after),
            '?' => (0, Some(1), after),
            _ => match parse_counts(text) {
                Some((counts, after)) => {
                    let (min, max) =
                        counts.ok_or_else(|| Error::new("invalid repeat count", up_to(text, after)))?;
                    (min, max, after)
                }
                None => {
                    self.literal(u32::from('{'));
                    return Ok((after, None));
                }
            },
        };
        let (lazy, after) = match after.strip_prefix('?') {
            Some(after) => (true, after),
            None => (false, after),
        };
        if let Some(last) = last_repeat {
            return Err(Error::new("invalid nested repetition operator", up_to(last, after)));
        }
        let Some(Item::Operand(operand)) = self.stack.pop_if(|item| matches!(item, Item::Operand(_))) else {
            return Err(Error::new("missing argument to repetition operator", up_to(text, after)));
        };
        let repeated = self.repeat(operand, (min, max), lazy);
        if first == '{' && repeated.copies > MAX_REPEAT {
            return Err(Error::new("invalid repeat count", up_to(text, after)));
        }
        self.check_height(&repeated)?;
        self.stack.push(Item::Operand(repeated));
        Ok((after, Some(text)))
    }

    fn repeat(&self, operand: Operand, (min, max): (u32, Option<u32>), lazy: bool) -> Operand {
        let counted = max.map_or(min, |max| max);
        let copies = match max {
            Some(0) => 1,
            _ => operand.copies.saturating_mul(counted.max(1)),
        };
        let greedy = lazy == self.flags.swap_greed;
        let hir = Hir::repetition(Repetition { min, max, greedy, sub: Box::new(operand.hir) });
        Operand { hir, copies, height: operand.height.saturating_add(1) }
    }

    fn step_escape(&mut self, text: &'p str) -> Parsed<'p, &'p str> {
        let (_, after) = next_char(text);
        let (letter, after) = next_char(after);
        match letter {
            'A' => return Ok(self.look(Look::Start, after)),
            'b' => return Ok(self.look(Look::WordAscii, after)),
            'B' => return Ok(self.look(Look::WordAsciiNegate, after)),
            'z' => return Ok(self.look(Look::End, after)),
            'C' => return Err(Error::new("invalid escape sequence", up_to(text, after))),
            'Q' => {
                let (literal, rest) = after.split_once(r"\E").unwrap_or((after, ""));
                for c in literal.chars() {
                    self.literal(u32::from(c));
                }
                return Ok(rest);
            }
            _ => {}
        }
        if let Some((class, rest)) = class_escape(text, self.flags.fold_case)? {
            self.push(sets::hir(class));
            return Ok(rest);
        }
        let (code, rest) = escape::parse(text)?;
        self.literal(code);
        Ok(rest)
    }

    fn look<'t>(&mut self, look: Look, after: &'t str) -> &'t str {
        self.push(Hir::look(look));
        after
    }

    /// Adds a code point; a surrogate, which strings cannot contain, matches nothing.
    fn literal(&mut self, code: u32) {
        let hir = match char::from_u32(code) {
            None => Hir::fail(),
            Some(c) if self.flags.fold_case => sets::hir(sets::folded(c)),
            Some(c) => Hir::literal(c.encode_utf8(&mut [0; 4]).as_bytes()),
        };
        self.push(hir);
    }

    fn push(&mut self, hir: Hir) {
        self.stack.push(Item::Operand(Operand { hir, copies: 1, height: 1 }));
    }

    /// `(?P<name>`, `(?<name>`, `(?flags)`, `(?flags:`.
    fn open_special(&mut self, text: &'p str) -> Parsed<'p, &'p str> {
        let named = text.strip_prefix("(?P<").or_else(|| text.strip_prefix("(?<"));
        if let Some(named) = named.filter(|rest| !rest.is_empty()) {
            let (name, after) =
                named.split_once('>').ok_or_else(|| Error::new("invalid named capture", text))?;
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
                return Err(Error::new("invalid named capture", up_to(text, after)));
            }
            self.stack.push(Item::Open(self.flags));
            return Ok(after);
        }
        let mut flags = self.flags;
        let mut rest = text.get(2..).unwrap_or_default();
        // None before a minus; whether a flag followed it, after.
        let mut negated: Option<bool> = None;
        while !rest.is_empty() {
            let (c, after) = next_char(rest);
            rest = after;
            let on = negated.is_none();
            match c {
                'i' => flags.fold_case = on,
                'm' => flags.multi_line = on,
                's' => flags.dot_matches_newline = on,
                'U' => flags.swap_greed = on,
                '-' if negated.is_none() => {
                    negated = Some(false);
                    continue;
                }
                ':' | ')' if negated != Some(false) => {
                    if c == ':' {
                        self.stack.push(Item::Open(self.flags));
                    }
                    self.flags = flags;
                    return Ok(rest);
                }
                _ => return Err(Error::new("invalid or unsupported Perl syntax", up_to(text, rest))),
            }
            negated = negated.map(|_| true);
        }
        Err(Error::new("invalid or unsupported Perl syntax", text))
    }

    fn close_group(&mut self) -> Parsed<'p, ()> {
        let mut operand = self.close();
        let Some(Item::Open(flags)) = self.stack.pop() else {
            return Err(Error::new("unexpected )", self.pattern));
        };
        self.flags = flags;
        operand.height = operand.height.saturating_add(1);
        self.check_height(&operand)?;
        self.stack.push(Item::Operand(operand));
        Ok(())
    }

    /// All alternatives back to the innermost open group.
    fn close(&mut self) -> Operand {
        let mut alternatives = vec![self.concatenate()];
        while self.stack.pop_if(|item| matches!(item, Item::Bar)).is_some() {
            alternatives.push(self.concatenate());
        }
        combined(alternatives, Hir::alternation)
    }

    /// All operands back to the innermost bar or open group.
    fn concatenate(&mut self) -> Operand {
        let mut operands = Vec::new();
        while let Some(Item::Operand(operand)) = self.stack.pop_if(|item| matches!(item, Item::Operand(_))) {
            operands.push(operand);
        }
        combined(operands, Hir::concat)
    }

    const fn check_height(&self, operand: &Operand) -> Parsed<'p, ()> {
        if operand.height > MAX_HEIGHT {
            return Err(Error::new("expression nests too deeply", self.pattern));
        }
        Ok(())
    }
}

/// Operands that were popped off a stack, the last one first.
fn combined(operands: Vec<Operand>, combine: fn(Vec<Hir>) -> Hir) -> Operand {
    let copies = operands.iter().map(|operand| operand.copies).max().unwrap_or(1);
    let height = operands.iter().map(|operand| operand.height).max().unwrap_or(0);
    let height = if operands.len() == 1 { height } else { height.saturating_add(1) };
    let parts = operands.into_iter().rev().map(|operand| operand.hir).collect();
    Operand { hir: combine(parts), copies, height }
}

/// The minimum, and the maximum if there is one.
type Counts = (u32, Option<u32>);

/// Parses `{2}`, `{2,}`, `{2,3}`; returns the counts and the rest. None if the text has another form, inner None if the counts are out
/// of range.
fn parse_counts(text: &str) -> Option<(Option<Counts>, &str)> {
    let (min, rest) = parse_count(text.strip_prefix('{')?)?;
    let (max, rest) = match rest.strip_prefix(',') {
        None => (Some(min), rest),
        Some(rest) if rest.starts_with('}') => (None, rest),
        Some(rest) => {
            let (max, rest) = parse_count(rest)?;
            (Some(max), rest)
        }
    };
    let rest = rest.strip_prefix('}')?;
    let in_range = min <= MAX_REPEAT && max.is_none_or(|max| (min..=MAX_REPEAT).contains(&max));
    Some((in_range.then_some((min, max)), rest))
}

/// Digits without a leading zero.
fn parse_count(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    if digits.is_empty() || (digits.len() > 1 && digits.starts_with('0')) {
        return None;
    }
    Some((digits.parse().unwrap_or(u32::MAX), rest))
}
