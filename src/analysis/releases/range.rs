//! Parses releases and ranges of them: `1.31`, `1.29..1.37`.

use std::fmt;
use std::str::FromStr;

use admit_cel::Version;
use thiserror::Error;

/// The oldest release of which enough is known.
pub const FIRST: Release = Release(Version(1, 29));
/// The newest.
pub const LAST: Release = Release(Version(1, 37));

/// A minor release of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release(pub Version);

/// At least one release, in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Releases(Vec<Release>);

/// Why a text is not a valid range of releases.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReleasesError {
    /// It is not of the form.
    #[error("`{0}` is no release: write 1.31, or 1.29..1.37")]
    Malformed(String),
    /// The range ends before it begins.
    #[error("`{0}` ends before it begins")]
    Backwards(String),
    /// Too little is known of the release.
    #[error("{0} is not known: releases {FIRST} to {LAST} are")]
    Unknown(Release),
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0.0, self.0.1)
    }
}

impl FromStr for Release {
    type Err = ReleasesError;

    fn from_str(text: &str) -> Result<Self, ReleasesError> {
        let bare = text.strip_prefix('v').unwrap_or(text);
        let parts = bare.split_once('.').and_then(|(major, minor)| Some((number(major)?, number(minor)?)));
        let Some((major, minor)) = parts else { return Err(ReleasesError::Malformed(text.to_owned())) };
        let release = Self(Version(major, minor));
        if (FIRST..=LAST).contains(&release) { Ok(release) } else { Err(ReleasesError::Unknown(release)) }
    }
}

fn number(text: &str) -> Option<u16> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}

impl FromStr for Releases {
    type Err = ReleasesError;

    fn from_str(text: &str) -> Result<Self, ReleasesError> {
        let (first, last) = match text.split_once("..") {
            Some((first, last)) => (first.parse()?, last.parse()?),
            None => {
                let only: Release = text.parse()?;
                (only, only)
            }
        };
        if first > last {
            return Err(ReleasesError::Backwards(text.to_owned()));
        }
        Ok(Self::between(first, last))
    }
}

impl Releases {
    /// Returns every known release.
    #[must_use]
    pub fn all() -> Self {
        Self::between(FIRST, LAST)
    }

    fn between(first: Release, last: Release) -> Self {
        let Version(major, from) = first.0;
        Self((from..=last.0.1).map(|minor| Release(Version(major, minor))).collect())
    }

    /// Returns the releases in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Release> + '_ {
        self.0.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_or_a_range_is_read_and_others_are_told_what_is_wrong() {
        let read = |text: &str| {
            text.parse::<Releases>()
                .map(|releases| {
                    releases.iter().map(|release| release.to_string()).collect::<Vec<_>>().join(" ")
                })
                .map_err(|error| error.to_string())
        };
        assert_eq!(read("1.31").as_deref(), Ok("1.31"));
        assert_eq!(read("v1.35..v1.37").as_deref(), Ok("1.35 1.36 1.37"));
        assert_eq!(read("1.31..1.31").as_deref(), Ok("1.31"));
        for (text, told) in [
            ("", "`` is no release: write 1.31, or 1.29..1.37"),
            ("1.x", "`1.x` is no release: write 1.31, or 1.29..1.37"),
            ("1.31.2", "`1.31.2` is no release: write 1.31, or 1.29..1.37"),
            ("1.+31", "`1.+31` is no release: write 1.31, or 1.29..1.37"),
            ("1.33..1.31", "`1.33..1.31` ends before it begins"),
            ("1.28..1.31", "1.28 is not known: releases 1.29 to 1.37 are"),
            ("1.99999", "`1.99999` is no release: write 1.31, or 1.29..1.37"),
        ] {
            assert_eq!(read(text), Err(told.to_owned()), "{text}");
        }
    }
}
