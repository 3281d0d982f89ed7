//! Builds the name of an archive on the server: with the case as a prefix, and in a user's folder for internal users.

use std::fmt;

/// The longest case number, by the CRD of MustGather.
const MAX_CASE: usize = 128;

#[derive(Debug, thiserror::Error, PartialEq)]
pub enum NameError {
    #[error(
        "the case `{0}` is none: 1 to 128 letters, digits, dots, dashes and underscores, of which the first is a letter or digit"
    )]
    Case(String),
    #[error("the user name cannot be a folder: it holds a slash or begins with a dot")]
    Folder,
    #[error("`{0}` is no name of a file")]
    Local(String),
}

/// The path of an archive on the server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RemoteName(String);

impl RemoteName {
    /// Creates `<case>_<local>`, in the folder `<internal user>` if one is given.
    ///
    /// # Errors
    /// [`NameError`] for parts that would lead to another folder.
    pub fn new(case: &str, local: &str, internal_user: Option<&str>) -> Result<Self, NameError> {
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let first = case.starts_with(|c: char| c.is_ascii_alphanumeric());
        if !first || case.len() > MAX_CASE || !case.chars().all(legal) {
            return Err(NameError::Case(case.to_owned()));
        }
        if local.is_empty() || local.contains(['/', '\0', '\n']) {
            return Err(NameError::Local(local.to_owned()));
        }
        match internal_user {
            None => Ok(Self(format!("{case}_{local}"))),
            Some(user) if user.is_empty() || user.starts_with('.') || user.contains(['/', '\0', '\n']) => {
                Err(NameError::Folder)
            }
            Some(user) => Ok(Self(format!("{user}/{case}_{local}"))),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the temporary name of the incomplete file.
    pub(super) fn partial(&self) -> String {
        format!("{}.part", self.0)
    }
}

impl fmt::Display for RemoteName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nowhere_else() {
        let name = |case, local, user| RemoteName::new(case, local, user).map(|name| name.to_string());
        assert_eq!(name("0123", "a.tar.gz", None).unwrap(), "0123_a.tar.gz");
        assert_eq!(name("0123", "a.tar.gz", Some("eve")).unwrap(), "eve/0123_a.tar.gz");
        let long = "1".repeat(129);
        for case in ["", "-1", "../x", "a/b", "a\nput b", ".a", &long] {
            assert!(matches!(name(case, "a", None), Err(NameError::Case(_))), "{case}");
        }
        assert!(matches!(name("1", "a/b", None), Err(NameError::Local(_))));
        assert!(matches!(name("1", "", None), Err(NameError::Local(_))));
        for user in ["", "..", "a/b", "a\n"] {
            assert_eq!(name("1", "a", Some(user)), Err(NameError::Folder), "{user}");
        }
    }
}
