//! Collects paths of mistakes with limits: a document may have as many mistakes as bytes, each with a path
//! as long as the document.

/// The number of paths that are kept. sigs.k8s.io/json stops at the same number, and does not say how many more there
/// are.
pub const MAX_PATHS: usize = 100;

/// The longest step of a path that is shown, in bytes. The longest name with a meaning in Kubernetes, a label's key with its
/// prefix, has 317.
const MAX_STEP: usize = 512;

/// The length in bytes to which a path is cut: no schema nests so deep that a path of its own names comes near it.
pub const MAX_PATH: usize = 4 << 10;

/// Replaces what was left out.
pub const MORE: &str = "…";

/// The first paths of many, each once, and cut if it is very long.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Paths {
    told: Vec<String>,
    untold: usize,
}

impl Paths {
    /// Creates an empty collection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the path that `path` returns, if there is room; otherwise `path` is not even called.
    pub fn note(&mut self, path: impl FnOnce() -> String) {
        if self.is_full() {
            self.untold = self.untold.saturating_add(1);
            return;
        }
        let mut path = path();
        shorten(&mut path, MAX_PATH);
        if !self.told.contains(&path) {
            self.told.push(path);
        }
    }

    /// Whether another path would only be counted.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.told.len() >= MAX_PATHS
    }

    /// Whether no path is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.told.is_empty()
    }

    /// Returns how many paths were reported after the last one that is kept.
    #[must_use]
    pub const fn untold(&self) -> usize {
        self.untold
    }

    /// Returns the kept paths.
    #[must_use]
    pub fn told(&self) -> &[String] {
        &self.told
    }

    /// Returns the kept paths as a vector.
    #[must_use]
    pub fn into_told(self) -> Vec<String> {
        self.told
    }
}

/// Appends a step to a path, within the lengths to which both are cut.
pub fn push_step(path: &mut String, step: &str) {
    if path.len() > MAX_PATH {
        return;
    }
    match head(step) {
        Some(head) => {
            path.push_str(head);
            path.push_str(MORE);
        }
        None => path.push_str(step),
    }
}

/// Cuts a text that is longer than `most` bytes, and marks the cut.
pub fn shorten(text: &mut String, most: usize) {
    if let Some(length) = shown(text, most).map(str::len) {
        text.truncate(length);
        text.push_str(MORE);
        text.shrink_to_fit();
    }
}

/// Returns the beginning of a step that is too long to be shown; None if it is not.
#[must_use]
pub fn head(step: &str) -> Option<&str> {
    shown(step, MAX_STEP)
}

/// Returns the beginning of a text that is longer than `most` bytes; None if it is not.
fn shown(text: &str, most: usize) -> Option<&str> {
    (text.len() > most).then(|| text.get(..text.floor_char_boundary(most)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_paths_are_told_as_they_are_and_each_once() {
        let mut paths = Paths::new();
        for path in ["a", "b.c", "a"] {
            paths.note(|| path.to_owned());
        }
        assert_eq!((paths.told(), paths.untold()), (["a".to_owned(), "b.c".to_owned()].as_slice(), 0));
    }

    #[test]
    fn many_paths_are_counted_and_not_made() {
        let mut paths = Paths::new();
        let mut made = 0;
        for number in 0..1_000 {
            paths.note(|| {
                made += 1;
                format!("p{number}")
            });
        }
        assert_eq!((paths.told().len(), made, paths.untold()), (MAX_PATHS, MAX_PATHS, 900));
    }

    #[test]
    fn long_ones_are_cut_between_characters() {
        let mut path = String::new();
        push_step(&mut path, &"ä".repeat(1_000));
        assert_eq!(path.len(), MAX_STEP + MORE.len());
        (0..100).for_each(|_| push_step(&mut path, &"k".repeat(300)));
        assert!(path.len() < MAX_PATH + 1_000, "{}", path.len());
        let mut text = format!("{}ä", "x".repeat(9));
        shorten(&mut text, 10);
        assert_eq!(text, "xxxxxxxxx…");
    }
}
