//! Selects lines from a text that arrives in parts.

use regex_automata::meta::Regex;

/// How many bytes of a line are searched and kept.
const MAX_LINE: usize = 64 * 1024;

pub(super) struct Lines<'r> {
    wanted: &'r Regex,
    /// How many more bytes may be kept.
    room: usize,
    kept: Vec<u8>,
    line: Vec<u8>,
    /// The number of matching lines that did not fit.
    left: usize,
}

impl<'r> Lines<'r> {
    pub(super) fn new(wanted: &'r Regex, room: usize) -> Self {
        Self { wanted, room, kept: Vec::new(), line: Vec::new(), left: 0 }
    }

    pub(super) fn add(&mut self, part: &[u8]) {
        let mut lines = part.split(|byte| *byte == b'\n');
        let Some(first) = lines.next() else { return };
        self.go_on(first);
        for line in lines {
            self.end();
            self.go_on(line);
        }
    }

    /// Returns the selected lines, and how many did not fit.
    pub(super) fn into_text(mut self) -> (String, usize) {
        self.end();
        (String::from_utf8_lossy(&self.kept).into_owned(), self.left)
    }

    fn go_on(&mut self, part: &[u8]) {
        let room = MAX_LINE.saturating_sub(self.line.len()).min(part.len());
        self.line.extend_from_slice(part.get(..room).unwrap_or_default());
    }

    fn end(&mut self) {
        if !self.line.is_empty() && self.wanted.is_match(&self.line) {
            if self.kept.len() + self.line.len() < self.room {
                self.kept.extend_from_slice(&self.line);
                self.kept.push(b'\n');
            } else {
                self.left += 1;
            }
        }
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_however_they_come() {
        let wanted = Regex::new_many(&["took too long", "^E1"]).unwrap();
        let text = "E1 first\nnothing\nit took too long\n\nE2\nlast E1 took too long";
        for step in 1..text.len() {
            let mut lines = Lines::new(&wanted, 1_000);
            text.as_bytes().chunks(step).for_each(|part| lines.add(part));
            let expected = "E1 first\nit took too long\nlast E1 took too long\n";
            assert_eq!(lines.into_text(), (expected.to_owned(), 0), "{step}");
        }
    }

    #[test]
    fn neither_a_line_nor_all_of_them_outgrow_their_room() {
        let all = Regex::new("x").unwrap();
        let mut lines = Lines::new(&all, 2 * MAX_LINE);
        (0..10).for_each(|_| lines.add(&[b'x'; MAX_LINE]));
        assert_eq!(lines.line.len(), MAX_LINE);
        lines.add(b"\nx\n");
        lines.add(&[b'x'; MAX_LINE]);
        let (text, left) = lines.into_text();
        assert_eq!((text.len(), left), (MAX_LINE + 3, 1));
    }
}
