//! Finds the lines of fields in manifests. Objects are held without the positions of their fields, so the file of an object
//! is read again when something about it is reported.

use std::fs;

use admit_policy::manifest::{Document, Position};

use crate::cli::load;

/// The longest file in bytes that is read again; findings in longer ones point at the object.
const LONGEST: u64 = 4 << 20;

/// The documents of the file that was read last: findings come file by file.
#[derive(Debug, Default)]
pub(super) struct Fields {
    file: String,
    documents: Vec<Document>,
}

impl Fields {
    /// Returns the position of `field` (in Kubernetes' notation) of the object at `at`, or of the nearest parent that is written.
    /// None if the file cannot be read again, as with standard input, or has another object there by now.
    pub(super) fn position(&mut self, file: &str, at: Position, field: &str) -> Option<Position> {
        if self.file != file {
            self.documents = documents(file).unwrap_or_default();
            file.clone_into(&mut self.file);
        }
        let place = self.documents.binary_search_by_key(&at, Document::here).ok()?;
        self.documents.get(place).map(|document| document.position(field))
    }
}

fn documents(file: &str) -> Option<Vec<Document>> {
    let about = fs::metadata(file).ok()?;
    if !about.is_file() || about.len() > LONGEST {
        return None;
    }
    load::parse(file, &fs::read_to_string(file).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_in_files_of_several_objects() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        fs::write(&path, "spec:\n  size: 1\n---\nspec:\n  list:\n  - a\n  - b\n").unwrap();
        let file = path.to_str().unwrap();
        let mut fields = Fields::default();
        let mut line = |at: usize, field: &str| {
            let at = Position { line: at, column: 1 };
            fields.position(file, at, field).map(|position| (position.line, position.column))
        };
        assert_eq!(line(1, "spec.size"), Some((2, 3)));
        assert_eq!(line(4, "spec.list[1]"), Some((7, 5)));
        assert_eq!(line(4, "spec.missing"), Some((4, 1)));
        assert_eq!(line(2, "spec.size"), None, "there is no such object");
        assert_eq!(Fields::default().position("-", Position::default(), "spec"), None);
    }
}
