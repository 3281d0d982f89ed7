//! Records duplicate members of objects: the first paths, and the number of the rest.

use admit_apimachinery::bounded::{MAX_PATHS, shorten};

/// The maximum number of duplicates whose paths are computed to find ones not recorded yet.
const MAX_LOOKED_AT: usize = 10_000;

/// More places are one: somewhere.
const MAX_PLACES: usize = 16;

/// The maximum length of a recorded name in bytes; no caller compares with a longer one.
const MAX_NAME: usize = 64;

/// The duplicate members of a document.
///
/// ```
/// use admit_policy::json;
///
/// let read = json::parse(br#"{"spec": {"a": 1, "a": 2}}"#)?;
/// let repeats = read.duplicates;
/// assert_eq!((repeats.count(), repeats.is_empty()), (1, false));
/// assert_eq!(repeats.paths().collect::<Vec<_>>(), ["spec.a"]);
/// assert!(repeats.are_within(&[["spec", ""]]) && !repeats.are_within(&[["status", ""]]));
/// # Ok::<(), json::JsonError>(())
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Repeats {
    /// The paths with their offsets. The parser closes inner objects before it reaches later members of outer ones.
    paths: Vec<(usize, String)>,
    count: usize,
    /// The names of the two outermost members that repetitions were found in.
    places: Vec<[String; 2]>,
    everywhere: bool,
}

impl Repeats {
    /// Records a duplicate; its path is computed only if there is space for it.
    pub(super) fn note(&mut self, at: usize, place: [&str; 2], path: impl FnOnce() -> String) {
        self.count = self.count.saturating_add(1);
        self.note_place(place);
        if self.paths.len() >= MAX_PATHS || self.count > MAX_LOOKED_AT {
            return;
        }
        let path = path();
        // As sigs.k8s.io/json, report each path once.
        if !self.paths.iter().any(|(_, known)| *known == path) {
            self.paths.push((at, path));
        }
    }

    fn note_place(&mut self, place: [&str; 2]) {
        if self.everywhere || self.places.last().is_some_and(|last| *last == place) {
            return;
        }
        let place = place.map(|name| {
            let mut name = name.get(..name.floor_char_boundary(MAX_NAME + 1)).unwrap_or(name).to_owned();
            shorten(&mut name, MAX_NAME);
            name
        });
        if self.places.contains(&place) {
            return;
        }
        self.everywhere = self.places.len() >= MAX_PLACES;
        if !self.everywhere {
            self.places.push(place);
        }
    }

    pub(super) fn in_order(mut self) -> Self {
        self.paths.sort_by_key(|(at, _)| *at);
        self
    }

    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The number of duplicate members.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Returns the first paths in the order of the text, each once and shortened if very long.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(|(_, path)| path.as_str())
    }

    /// Whether all duplicates are below one of `places`, each given by the names of the two outermost members.
    #[must_use]
    pub fn are_within(&self, places: &[[&str; 2]]) -> bool {
        let allowed = |found: &[String; 2]| places.iter().any(|place| found == place);
        !self.everywhere && self.places.iter().all(allowed)
    }
}
