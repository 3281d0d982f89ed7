//! Combines the statements of many parts into one condition. Pure.
//!
//! If one part is bad, the whole is. Degraded has inertia: parts that have been bad for less than two minutes do not
//! make it True, because it alerts people; but they keep it True if it is, so that a new process does not alert
//! twice.

use std::time::Duration;

use tokio::time::Instant;

use crate::controllers::kit::conditions::{Statement, Truth};

/// The standard conditions of an operator.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Aspect {
    Available,
    Progressing,
    Degraded,
}

/// How long a part must be bad before that is reported.
const INERTIA: Duration = Duration::from_mins(2);

impl Aspect {
    pub const ALL: [Self; 3] = [Self::Available, Self::Progressing, Self::Degraded];

    /// Returns the type of the condition.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Available => "Available",
            Self::Progressing => "Progressing",
            Self::Degraded => "Degraded",
        }
    }

    fn good(self) -> Truth {
        match self {
            Self::Available => Truth::True,
            Self::Progressing | Self::Degraded => Truth::False,
        }
    }

    fn bad(self) -> Truth {
        match self {
            Self::Available => Truth::False,
            Self::Progressing | Self::Degraded => Truth::True,
        }
    }

    fn inertia(self) -> Duration {
        match self {
            Self::Available | Self::Progressing => Duration::ZERO,
            Self::Degraded => INERTIA,
        }
    }
}

/// The statement of one part on one aspect.
#[derive(Clone, Debug, PartialEq)]
pub struct Word {
    pub truth: Truth,
    /// The reason in CamelCase.
    pub reason: String,
    pub message: String,
    /// Since when the statement is valid.
    pub since: Instant,
}

/// A condition, and when it changes without a new statement.
#[derive(Debug, PartialEq)]
pub(super) struct Union {
    pub(super) statement: Statement,
    pub(super) until: Option<Instant>,
}

/// Combines the statements of all parts to the condition `aspect`, depending on whether it was bad before.
pub(super) fn union<'w>(
    aspect: Aspect,
    words: impl Iterator<Item = (&'static str, &'w Word)>,
    was_bad: bool,
    now: Instant,
) -> Union {
    let words: Vec<_> = words.collect();
    if words.is_empty() {
        let statement = Statement::new(aspect.name(), Truth::Unknown, "NoData", "nothing is known yet");
        return Union { statement, until: None };
    }
    let bad: Vec<_> = words.iter().filter(|(_, word)| word.truth != aspect.good()).copied().collect();
    let ripe = |word: &Word| word.since + aspect.inertia() <= now;
    if bad.is_empty() || !(was_bad || bad.iter().any(|(_, word)| ripe(word))) {
        let until = bad.iter().map(|(_, word)| word.since + aspect.inertia()).min();
        let statement = Statement::new(aspect.name(), aspect.good(), "AsExpected", told(aspect, &words));
        return Union { statement, until };
    }
    let unknown = bad.iter().all(|(_, word)| word.truth == Truth::Unknown);
    let truth = if unknown { Truth::Unknown } else { aspect.bad() };
    let reasons: Vec<String> = bad.iter().map(|(part, word)| format!("{part}_{}", word.reason)).collect();
    let statement = Statement::new(aspect.name(), truth, &reasons.join("::"), told(aspect, &bad));
    Union { statement, until: None }
}

/// Returns a line for each line of each message, with the name of its part.
fn told(aspect: Aspect, words: &[(&'static str, &Word)]) -> String {
    let lines = words.iter().flat_map(|(part, word)| {
        let lines = word.message.lines().filter(|line| !line.is_empty());
        lines.map(move |line| format!("{part}{}: {line}", aspect.name()))
    });
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() { "All is well".to_owned() } else { lines.join("\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(truth: Truth, reason: &str, message: &str, since: Instant) -> Word {
        Word { truth, reason: reason.to_owned(), message: message.to_owned(), since }
    }

    fn of(aspect: Aspect, words: &[(&'static str, Word)], was_bad: bool, now: Instant) -> Union {
        union(aspect, words.iter().map(|(part, word)| (*part, word)), was_bad, now)
    }

    #[test]
    fn what_is_bad_of_a_part_is_bad_of_the_whole() {
        let now = Instant::now();
        let good = word(Truth::True, "AsExpected", "", now);
        let bad = |reason: &str| word(Truth::False, reason, "one\ntwo", now);
        let all_well = of(Aspect::Available, &[("A", good.clone())], false, now);
        assert_eq!(all_well.statement, Statement::new("Available", Truth::True, "AsExpected", "All is well"));
        let words = [("A", bad("Gone")), ("B", good), ("C", bad("Lost"))];
        let statement = of(Aspect::Available, &words, false, now).statement;
        let lines = "AAvailable: one\nAAvailable: two\nCAvailable: one\nCAvailable: two";
        assert_eq!(statement, Statement::new("Available", Truth::False, "A_Gone::C_Lost", lines));
        assert_eq!(of(Aspect::Progressing, &[], false, now).statement.reason, "NoData");
        let unknown = [("A", word(Truth::Unknown, "Silent", "?", now))];
        assert_eq!(of(Aspect::Available, &unknown, false, now).statement.truth, Truth::Unknown);
    }

    #[test]
    fn degraded_waits_two_minutes_and_does_not_end_with_a_process() {
        let since = Instant::now();
        let words = [
            ("A", word(Truth::True, "Broken", "it broke", since)),
            ("B", word(Truth::False, "AsExpected", "", since)),
        ];
        let at = |seconds| since + Duration::from_secs(seconds);
        let young = of(Aspect::Degraded, &words, false, at(119));
        assert_eq!((young.statement.truth, young.until), (Truth::False, Some(at(120))));
        // Not reported as a fault, and not hidden either.
        assert_eq!(young.statement.message, "ADegraded: it broke");
        let old = of(Aspect::Degraded, &words, false, at(120));
        assert_eq!((old.statement.truth, old.statement.reason.as_str()), (Truth::True, "A_Broken"));
        let still = of(Aspect::Degraded, &words, true, at(1));
        assert_eq!((still.statement.truth, still.until), (Truth::True, None));
        let over = [("A", word(Truth::False, "AsExpected", "", at(1)))];
        assert_eq!(of(Aspect::Degraded, &over, true, at(2)).statement.truth, Truth::False);
    }
}
