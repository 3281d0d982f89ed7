//! Counts failures of forwarding: several in a row are reported as one. Pure.

use super::vocabulary::Meaning;

/// How many failures in a row are reported as one, since a single failure says little.
pub const FAILURES: u32 = 3;

/// The failures of forwarding since the last success, or since the last that was reported.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Failures(u32);

impl Failures {
    /// Restores the count of a previous process.
    #[must_use]
    pub const fn so_far(count: u32) -> Self {
        Self(count)
    }

    #[must_use]
    pub const fn count(self) -> u32 {
        self.0
    }

    /// Counts a result and returns whether to report it: each success, and each third failure in a row.
    #[must_use = "a failure that is not to be told is only counted"]
    pub fn is_told(&mut self, meaning: Meaning) -> bool {
        match meaning {
            Meaning::ForwardFailure => {
                self.0 = self.0.saturating_add(1);
                let told = self.0 >= FAILURES;
                if told {
                    self.0 = 0;
                }
                told
            }
            Meaning::ForwardSuccessful => {
                self.0 = 0;
                true
            }
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_third_failure_in_a_row_is_told() {
        let mut failures = Failures::default();
        let mut tell = |meanings: &[Meaning]| -> Vec<bool> {
            meanings.iter().map(|meaning| failures.is_told(*meaning)).collect()
        };
        let (bad, good) = (Meaning::ForwardFailure, Meaning::ForwardSuccessful);
        assert_eq!(tell(&[bad, bad, good, bad, bad, bad]), [false, false, true, false, false, true]);
        assert_eq!(tell(&[bad, bad, bad, Meaning::UpdateSuccessful]), [false, false, true, true]);
        assert_eq!(failures.count(), 0);
        assert!(Failures::so_far(2).is_told(bad));
    }
}
