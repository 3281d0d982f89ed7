//! Decides whether every string that one pattern matches also matches another, without a solver (solvers
//! are slow at it).
//!
//! Both patterns are nondeterministic automata, walked in parallel by sets of states.

use std::collections::{BTreeSet, HashSet};

use admit_cel::PatternPart;

/// The maximum number of states of both automata, and of pairs of state sets.
const MOST_PLACES: usize = 20_000;
const MOST_PAIRS: usize = 5_000;
/// The maximum nesting of patterns.
const MOST_DEPTH: usize = 64;

/// Reports whether all strings that match `inner` match `outer`; `None` if that takes too long or a pattern
/// has boundaries.
pub(super) fn is_within(inner: &str, outer: &str) -> Option<bool> {
    let (inner, outer) = (PatternPart::of(inner).ok()?, PatternPart::of(outer).ok()?);
    let mut machine = Machine::default();
    let (inner, outer) = (machine.searched(&inner)?, machine.searched(&outer)?);
    let first = (machine.reached([inner].into()), machine.reached([outer].into()));
    let letters = machine.letters();
    let mut seen = HashSet::from([first.clone()]);
    let mut open = vec![first];
    while let Some((inner, outer)) = open.pop() {
        if machine.ends(&inner) && !machine.ends(&outer) {
            return Some(false);
        }
        for letter in &letters {
            let next = (machine.after(&inner, *letter), machine.after(&outer, *letter));
            if next.0.is_empty() || seen.contains(&next) {
                continue;
            }
            if seen.len() >= MOST_PAIRS {
                return None;
            }
            seen.insert(next.clone());
            open.push(next);
        }
    }
    Some(true)
}

/// A state of the automaton of a pattern.
enum Place {
    End,
    /// Reads one character of these ranges, then goes to another state.
    OneOf(Vec<(char, char)>, usize),
    Either(Vec<usize>),
}

#[derive(Default)]
struct Machine {
    places: Vec<Place>,
}

impl Machine {
    fn add(&mut self, place: Place) -> Option<usize> {
        if self.places.len() >= MOST_PLACES {
            return None;
        }
        self.places.push(place);
        self.places.len().checked_sub(1)
    }

    /// Builds the automaton of an unanchored search: anything may precede and follow, except at anchors.
    fn searched(&mut self, part: &PatternPart) -> Option<usize> {
        let one = std::slice::from_ref(part);
        let mut parts = match part {
            PatternPart::Concat(parts) => parts.as_slice(),
            _ => one,
        };
        let (mut is_begun, mut is_ended) = (false, false);
        while let [PatternPart::Start, rest @ ..] = parts {
            (is_begun, parts) = (true, rest);
        }
        while let [rest @ .., PatternPart::End] = parts {
            (is_ended, parts) = (true, rest);
        }
        let mut next = self.add(Place::End)?;
        if !is_ended {
            next = self.anything(next)?;
        }
        for part in parts.iter().rev() {
            next = self.part(part, next, MOST_DEPTH)?;
        }
        if is_begun { Some(next) } else { self.anything(next) }
    }

    fn anything(&mut self, next: usize) -> Option<usize> {
        let any = self.add(Place::Either(vec![next]))?;
        let letter = self.add(Place::OneOf(vec![('\0', char::MAX)], any))?;
        self.lead(any, letter);
        Some(any)
    }

    /// Adds a transition without input.
    fn lead(&mut self, from: usize, to: usize) {
        if let Some(Place::Either(ways)) = self.places.get_mut(from) {
            ways.push(to);
        }
    }

    fn part(&mut self, part: &PatternPart, next: usize, depth: usize) -> Option<usize> {
        let depth = depth.checked_sub(1)?;
        match part {
            PatternPart::Empty => Some(next),
            PatternPart::Text(text) => {
                text.chars().rev().try_fold(next, |next, c| self.add(Place::OneOf(vec![(c, c)], next)))
            }
            PatternPart::OneOf(ranges) => self.add(Place::OneOf(ranges.clone(), next)),
            PatternPart::Concat(parts) => {
                parts.iter().rev().try_fold(next, |next, part| self.part(part, next, depth))
            }
            PatternPart::Either(parts) => {
                let ways = parts.iter().map(|part| self.part(part, next, depth)).collect::<Option<_>>()?;
                self.add(Place::Either(ways))
            }
            PatternPart::Repeat { least, most, part } => {
                let mut first = match most {
                    Some(most) => {
                        let mut first = next;
                        for _ in *least..*most {
                            let once = self.part(part, first, depth)?;
                            first = self.add(Place::Either(vec![once, next]))?;
                        }
                        first
                    }
                    None => {
                        let again = self.add(Place::Either(vec![next]))?;
                        let once = self.part(part, again, depth)?;
                        self.lead(again, once);
                        again
                    }
                };
                for _ in 0..*least {
                    first = self.part(part, first, depth)?;
                }
                Some(first)
            }
            PatternPart::Start | PatternPart::End | PatternPart::Around => None,
        }
    }

    /// Returns one character of each class that the patterns distinguish.
    fn letters(&self) -> Vec<char> {
        let mut letters = BTreeSet::from(['\0']);
        for place in &self.places {
            let Place::OneOf(ranges, _) = place else { continue };
            for (first, last) in ranges {
                letters.insert(*first);
                letters.extend((*last..=char::MAX).nth(1));
            }
        }
        letters.into_iter().collect()
    }

    /// Returns the states, reading ones and the final one, that are reachable without input.
    fn reached(&self, from: BTreeSet<usize>) -> BTreeSet<usize> {
        let (mut seen, mut found) = (BTreeSet::new(), BTreeSet::new());
        let mut open: Vec<usize> = from.into_iter().collect();
        while let Some(at) = open.pop() {
            if !seen.insert(at) {
                continue;
            }
            match self.places.get(at) {
                Some(Place::Either(ways)) => open.extend(ways),
                Some(Place::End | Place::OneOf(..)) => drop(found.insert(at)),
                None => {}
            }
        }
        found
    }

    fn after(&self, at: &BTreeSet<usize>, letter: char) -> BTreeSet<usize> {
        let next = at.iter().filter_map(|place| match self.places.get(*place) {
            Some(Place::OneOf(ranges, next)) => {
                let has = ranges.iter().any(|(first, last)| (*first..=*last).contains(&letter));
                has.then_some(*next)
            }
            _ => None,
        });
        self.reached(next.collect())
    }

    fn ends(&self, at: &BTreeSet<usize>) -> bool {
        at.iter().any(|place| matches!(self.places.get(*place), Some(Place::End)))
    }
}

#[cfg(test)]
mod tests {
    use super::is_within;

    #[test]
    fn languages_within_others_are_told() {
        for (inner, outer, expected) in [
            ("^a+$", "^a*$", Some(true)),
            ("^a*$", "^a+$", Some(false)),
            ("^[a-f]{2}$", "^[a-z]{1,3}$", Some(true)),
            ("^[a-z]{2}$", "^[a-f]{1,3}$", Some(false)),
            ("abc", "b", Some(true)),
            ("b", "abc", Some(false)),
            ("^(a|b)c", "^[ab]", Some(true)),
            ("^([0-9]{1,5}(h|m|s|ms)){1,4}$", "^([0-9]{1,5}(ms|s|m|h)){1,20}$", Some(true)),
            ("^([0-9]{1,6}(h|m|s|ms)){1,4}$", "^([0-9]{1,5}(ms|s|m|h)){1,20}$", Some(false)),
            ("^([0-9]{1,5}(h|m|s|ms)){1,4}$", "^[^-]*$", Some(true)),
            ("é", "^.*$", Some(false)),
            ("^é$", "^.*$", Some(true)),
            (r"a\b", "a", None),
            ("(^a|b)", "a", None),
        ] {
            assert_eq!(is_within(inner, outer), expected, "{inner} within {outer}");
        }
    }
}
