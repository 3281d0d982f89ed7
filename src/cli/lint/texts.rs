//! Holds the texts of the linted files, indexed by line number.

use std::collections::HashMap;

/// The texts of files by their names.
#[derive(Debug, Default)]
pub(in crate::cli) struct Texts(HashMap<String, Text>);

impl Texts {
    pub(super) fn insert(&mut self, file: String, text: String) {
        self.0.insert(file, Text::new(text));
    }

    pub(in crate::cli) fn get(&self, file: &str) -> Option<&Text> {
        self.0.get(file)
    }
}

/// A text whose lines are found by number: a file may have as many findings as lines.
#[derive(Debug)]
pub(in crate::cli) struct Text {
    text: String,
    /// Where each line begins, in bytes, in order.
    starts: Vec<usize>,
}

impl Text {
    pub(super) fn new(text: String) -> Self {
        let behind = text.match_indices('\n').map(|(at, newline)| at.saturating_add(newline.len()));
        let starts = std::iter::once(0).chain(behind.filter(|at| *at < text.len())).collect();
        Self { text, starts }
    }

    /// A line by its number, from one, without its end.
    pub(in crate::cli) fn line(&self, number: usize) -> Option<&str> {
        self.from(number)?.lines().next()
    }

    /// The text from that line on, which is counted from one.
    pub(super) fn from(&self, number: usize) -> Option<&str> {
        self.text.get(*self.starts.get(number.checked_sub(1)?)?..)
    }
}

#[cfg(test)]
mod tests {
    use super::Text;

    #[test]
    fn lines_are_those_of_the_standard_library() {
        for text in ["", "\n", "a", "a\n", "a\nb", "a\r\n\nö\r\n", "\n\n", "a\rb\n"] {
            let indexed = Text::new(text.to_owned());
            let lines: Vec<&str> = (1..).map_while(|number| indexed.line(number)).collect();
            assert_eq!(lines, text.lines().collect::<Vec<_>>(), "{text:?}");
            assert_eq!(indexed.line(0), None);
        }
    }
}
