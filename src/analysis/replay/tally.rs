//! Counts and groups results, within size limits.

use super::event::Unread;
use super::report::{Cause, GroupKey, Place, Refused, Report, Sample};

/// The maximum number of samples per group.
const SAMPLES: usize = 3;
/// The maximum size of all groups; effects that would need another group are only counted.
const GROUP_BYTES: usize = 32 << 20;
/// The size of a group beside its strings.
const ENTRY_BYTES: usize = 512;
/// The maximum length of a name in a group, and of a message in a sample; the rest is cut off.
const MAX_NAME: usize = 512;
const MAX_MESSAGE: usize = 1_024;
/// The maximum number of recorded locations of unreadable lines, per cause.
const PLACES: usize = 10;

/// Fills a [`Report`], within bounds.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) report: Report,
    bytes: usize,
}

/// What a request contributes to every group.
#[derive(Debug)]
pub(super) struct Told<'r> {
    pub(super) place: Place<'r>,
    pub(super) audit_id: &'r str,
    pub(super) name: &'r str,
    pub(super) time: &'r str,
}

impl Tally {
    pub(super) fn unread(&mut self, place: Place<'_>, cause: Unread) {
        let lines = self.report.unread.entry(cause).or_default();
        raise(&mut lines.count);
        if lines.places.len() < PLACES {
            lines.places.push(shown(place));
        }
    }

    pub(super) fn refused(&mut self, by: Refused) {
        raise(&mut self.report.counts.refused);
        raise(self.report.refused.entry(by).or_default());
    }

    pub(super) fn undecided(&mut self, cause: Cause, resource: &str, told: &Told<'_>) {
        let key = (cause, cut(resource, MAX_NAME));
        if !self.report.undecided.contains_key(&key) && !self.takes(key.1.len()) {
            raise(&mut self.report.counts.beyond);
            return;
        }
        let found = self.report.undecided.entry(key).or_default();
        raise(&mut found.count);
        if found.samples.len() < SAMPLES {
            found.samples.push(sample(told, ""));
        }
    }

    pub(super) fn effect(&mut self, key: &GroupKey, message: &str, told: &Told<'_>) {
        let key = GroupKey {
            policy: cut(&key.policy, MAX_NAME),
            user: cut(&key.user, MAX_NAME),
            namespace: cut(&key.namespace, MAX_NAME),
            kind: cut(&key.kind, MAX_NAME),
            effect: key.effect,
            before: key.before,
        };
        let texts = [&key.policy, &key.user, &key.namespace, &key.kind].map(|text| text.len());
        let texts = texts.into_iter().fold(0, usize::saturating_add);
        if !self.report.groups.contains_key(&key) && !self.takes(texts) {
            raise(&mut self.report.counts.beyond);
            return;
        }
        let sample = sample(told, message);
        let group = self.report.groups.entry(key).or_default();
        raise(&mut group.count);
        // Times are in UTC and of equal length, so they sort as strings.
        let time = cut(told.time, MAX_NAME);
        if !time.is_empty() && (group.first.is_empty() || time < group.first) {
            group.first.clone_from(&time);
        }
        if time > group.last {
            group.last = time;
        }
        if group.samples.len() < SAMPLES {
            let texts = [&sample.audit_id, &sample.name, &sample.message, &sample.place].map(String::len);
            self.bytes = texts.into_iter().fold(self.bytes, usize::saturating_add);
            group.samples.push(sample);
        }
    }

    /// Reports whether there is space for another group.
    fn takes(&mut self, texts: usize) -> bool {
        let size = texts.saturating_add(ENTRY_BYTES);
        let grown = self.bytes.saturating_add(size);
        if grown > GROUP_BYTES {
            return false;
        }
        self.bytes = grown;
        true
    }
}

pub(super) fn raise(count: &mut u64) {
    *count = count.saturating_add(1);
}

fn sample(told: &Told<'_>, message: &str) -> Sample {
    Sample {
        audit_id: cut(told.audit_id, MAX_NAME),
        name: cut(told.name, MAX_NAME),
        message: cut(message, MAX_MESSAGE),
        place: shown(told.place),
    }
}

fn shown(Place { file, line }: Place<'_>) -> String {
    format!("{file}:{line}")
}

fn cut(text: &str, most: usize) -> String {
    let end = text.floor_char_boundary(most);
    match text.get(..end).filter(|_| end < text.len()) {
        Some(start) => format!("{start}…"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::Effect;
    use super::*;

    #[test]
    fn groups_beyond_the_bound_are_counted() {
        let mut tally = Tally { bytes: GROUP_BYTES - 2_000, ..Tally::default() };
        let told = Told {
            place: Place { file: "audit.log", line: 7 },
            audit_id: "a",
            name: "n",
            time: "2026-11-24T10:00:00.000000Z",
        };
        for number in 0..10 {
            let key = GroupKey {
                policy: format!("p{number}"),
                user: "u".repeat(1_000),
                namespace: String::new(),
                kind: "Pod".to_owned(),
                before: None,
                effect: Some(Effect::Deny),
            };
            tally.effect(&key, &"m".repeat(5_000), &told);
        }
        let Report { counts, groups, .. } = &tally.report;
        assert_eq!((groups.len(), counts.beyond), (1, 9));
        let (key, group) = groups.iter().next().unwrap();
        assert_eq!((key.user.chars().count(), group.samples[0].message.chars().count()), (513, 1_025));
        assert_eq!(group.samples[0].place, "audit.log:7");
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut("aéé", 2), "a…");
        assert_eq!(cut("aé", 3), "aé");
    }
}
