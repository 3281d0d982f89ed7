//! Reads the policies and definitions in the folders of an editor, within limits.

use std::path::Path;

use crate::cli::load;

/// The most files that are read.
const MAX_FILES: usize = 2_000;
/// The most bytes of all files that are kept.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// The files of interest in folders.
#[derive(Debug, Default)]
pub(super) struct Folder {
    /// Paths with their contents.
    pub(super) files: Vec<(String, String)>,
    /// Messages for the user about what was skipped, and why.
    pub(super) told: Vec<String>,
}

impl Folder {
    /// Reads a folder, and its subfolders.
    pub(super) fn read(&mut self, folder: &Path) {
        let found = match load::files(folder) {
            Ok(found) => found,
            Err(fault) => return self.told.push(fault.message),
        };
        let mut bytes: usize = self.files.iter().map(|(_, text)| text.len()).sum();
        for (index, file) in found.iter().enumerate() {
            if index >= MAX_FILES || bytes >= MAX_BYTES {
                let left = found.len() - index;
                self.told.push(format!(
                    "{left} files in {} are not looked at: {MAX_FILES} files, or {} MiB of policies and definitions, are",
                    folder.display(),
                    MAX_BYTES / 1024 / 1024,
                ));
                break;
            }
            // Read errors are reported when the file is opened.
            if let Ok(text) = file.text()
                && is_of_interest(&text)
            {
                bytes += text.len();
                self.files.push((file.path.display().to_string(), text));
            }
        }
    }
}

/// Whether other files may depend on this text.
pub(super) fn is_of_interest(text: &str) -> bool {
    text.contains("CustomResourceDefinition") || text.contains("AdmissionPolicy")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Folder, MAX_FILES};

    #[test]
    fn what_is_too_much_is_told() {
        let place = tempfile::tempdir().unwrap();
        for number in 0..MAX_FILES + 3 {
            fs::write(place.path().join(format!("{number}.yaml")), "kind: ConfigMap\n").unwrap();
        }
        fs::write(place.path().join("0.yaml"), "kind: CustomResourceDefinition\n").unwrap();
        let mut folder = Folder::default();
        folder.read(place.path());
        assert_eq!(folder.files.len(), 1);
        assert_eq!(folder.told.len(), 1);
        assert!(folder.told[0].starts_with("3 files in "), "{:?}", folder.told);
        folder.read(&place.path().join("nothing"));
        assert_eq!(folder.told.len(), 2);
    }
}
