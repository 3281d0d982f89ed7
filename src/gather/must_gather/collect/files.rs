//! Writes the files of a collection below one folder, whatever names a server sends.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::CollectError;

/// The longest file name in bytes on common file systems.
const MAX_NAME: usize = 255;

/// The folder of the collection.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Returns the path of a file. Its parts may come from a server: none of them leads out of the folder.
    pub(super) fn path(&self, parts: &[&str]) -> PathBuf {
        parts.iter().fold(self.0.clone(), |path, part| path.join(safe(part)))
    }

    /// Creates a file, replacing an existing one.
    pub(super) fn create(&self, parts: &[&str]) -> Result<(File, PathBuf), CollectError> {
        let path = self.path(parts);
        let created = self.folder_of(&path).and_then(|()| File::create(&path));
        created.map(|file| (file, path.clone())).map_err(|source| CollectError::Disk { path, source })
    }

    /// Opens a file for appending, creating it if it is missing.
    pub(super) fn go_on(&self, parts: &[&str]) -> Result<(File, PathBuf), CollectError> {
        let path = self.path(parts);
        let open = || OpenOptions::new().create(true).append(true).open(&path);
        let opened = self.folder_of(&path).and_then(|()| open());
        opened.map(|file| (file, path.clone())).map_err(|source| CollectError::Disk { path, source })
    }

    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), CollectError> {
        let (mut file, path) = self.create(&[name])?;
        file.write_all(text.as_bytes()).map_err(|source| CollectError::Disk { path, source })
    }

    /// Appends text to a file, which begins with `head`.
    pub(super) fn append(&self, parts: &[&str], head: &str, text: &str) -> Result<(), CollectError> {
        let path = self.path(parts);
        let append = || {
            self.folder_of(&path)?;
            let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
            if file.metadata()?.len() == 0 {
                file.write_all(head.as_bytes())?;
            }
            file.write_all(text.as_bytes())
        };
        append().map_err(|source| CollectError::Disk { path: path.clone(), source })
    }

    fn folder_of(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path.parent().unwrap_or(&self.0))
    }
}

/// Makes a path component safe: names of objects may contain a colon or a percent sign, and those of a malicious server anything.
fn safe(part: &str) -> String {
    let mut name: String = part.chars().map(|c| if c == '/' || c.is_control() { '_' } else { c }).collect();
    if name.is_empty() || name.bytes().all(|byte| byte == b'.') {
        name = format!("_{name}");
    }
    name.truncate(name.floor_char_boundary(MAX_NAME));
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_out_of_the_folder() {
        let folder = Folder::new(Path::new("/f"));
        for (part, expected) in [
            ("system:node", "/f/system:node/x"),
            ("..", "/f/_../x"),
            (".", "/f/_./x"),
            ("", "/f/_/x"),
            ("/etc/passwd", "/f/_etc_passwd/x"),
            ("a\n\0b", "/f/a__b/x"),
        ] {
            assert_eq!(folder.path(&[part, "x"]), Path::new(expected));
        }
        assert_eq!(folder.path(&[&"ö".repeat(200)]).file_name().unwrap().len(), 254);
    }
}
