//! Finds the lines of a file that differ from a git revision, with the `git` on the PATH.

use std::ops::RangeInclusive;
use std::path::Path;

use crate::cli::check::git;
use crate::cli::process::Fault;

/// The changed lines of a file.
#[derive(Debug)]
pub(super) enum Lines {
    /// The revision does not have the file.
    All,
    These(Vec<RangeInclusive<usize>>),
}

impl Lines {
    /// Returns the lines of `file` that changed since `revision`.
    ///
    /// # Errors
    /// When there is no git, no repository or no such revision.
    pub(super) fn since(revision: &str, file: &str) -> Result<Self, Fault> {
        let path = Path::new(file);
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let commit = git::commit(revision, folder)?;
        let known = git::run(folder, &["ls-tree", "-z", &commit, "--", &name])?;
        if known.is_empty() {
            return Ok(Self::All);
        }
        let differences =
            git::run(folder, &["diff", "--no-ext-diff", "--no-color", "--unified=0", &commit, "--", &name])?;
        Ok(Self::These(differences.lines().filter_map(hunk).collect()))
    }

    /// Whether one of `lines` has changed.
    pub(super) fn touch(&self, lines: &RangeInclusive<usize>) -> bool {
        match self {
            Self::All => true,
            Self::These(changed) => {
                changed.iter().any(|one| one.start() <= lines.end() && lines.start() <= one.end())
            }
        }
    }
}

/// Parses the new lines of `@@ -1,2 +3,4 @@`; after a pure deletion, the lines before and after it.
fn hunk(line: &str) -> Option<RangeInclusive<usize>> {
    let added = line.strip_prefix("@@ ")?.split(' ').find_map(|word| word.strip_prefix('+'))?;
    let (start, count) = added.split_once(',').unwrap_or((added, "1"));
    let (start, count): (usize, usize) = (start.parse().ok()?, count.parse().ok()?);
    Some(match count {
        0 => start..=start.saturating_add(1),
        count => start..=start.saturating_add(count).saturating_sub(1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hunks_name_the_lines_that_are_new() {
        for (line, lines) in [
            ("@@ -1 +1 @@", Some(1..=1)),
            ("@@ -3,2 +5,4 @@ spec:", Some(5..=8)),
            ("@@ -7,3 +6,0 @@", Some(6..=7)),
            ("+++ b/a.yaml", None),
            ("@@ nonsense", None),
        ] {
            assert_eq!(hunk(line), lines, "{line}");
        }
        let lines = Lines::These(vec![5..=8]);
        assert!(lines.touch(&(8..=9)) && lines.touch(&(1..=5)) && !lines.touch(&(9..=12)));
    }
}
