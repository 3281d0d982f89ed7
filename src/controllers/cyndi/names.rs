//! Parses and creates names of tables, connectors and versions, and quotes them for SQL. Pure.
//!
//! INVARIANT: a statement that changes anything contains only names that passed [`Table::parse`]. `LIKE 'hosts_%'`,
//! which others use, also matches `hostsXforeign`.

use std::fmt;

use jiff::Timestamp;

/// The schema of applications' databases that holds the tables and the view.
pub const SCHEMA: &str = "inventory";
/// The view that applications read.
pub const VIEW: &str = "hosts";
/// The role that may read the view.
pub const READER: &str = "cyndi_reader";
/// The most digits of a version, those of the largest number of nanoseconds.
const MAX_DIGITS: usize = 20;

/// A version of a pipeline: `1_` and nanoseconds.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Version(String);

impl Version {
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        Self(format!("1_{}", now.as_nanosecond().max(0)))
    }

    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("1_")?;
        let fits = (1..=MAX_DIGITS).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
        fits.then(|| Self(text.to_owned()))
    }

    #[must_use]
    pub fn table(&self) -> Table {
        Table(self.clone())
    }

    /// Returns the version of the connector `name` of an application.
    #[must_use]
    pub fn of_connector(name: &str, app: &str) -> Option<Self> {
        let digits = name.strip_prefix("cyndi-")?.strip_prefix(app)?.strip_prefix("-1-")?;
        Self::parse(&format!("1_{digits}"))
    }

    #[must_use]
    pub fn connector(&self, app: &str) -> String {
        format!("cyndi-{app}-{}", self.0.replacen('_', "-", 1))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A table of this controller: `^hosts_v1_[0-9]{1,20}$`.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Table(Version);

impl Table {
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        name.strip_prefix("hosts_v").and_then(Version::parse).map(Self)
    }

    #[must_use]
    pub fn version(&self) -> &Version {
        &self.0
    }

    /// Returns the quoted name with its schema.
    #[must_use]
    pub fn quoted(&self) -> String {
        format!("{}.{}", quoted(SCHEMA), quoted(&self.to_string()))
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hosts_v{}", self.0)
    }
}

/// Quotes any name as an SQL identifier.
#[must_use]
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('\0', "").replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tables_of_ours_are_taken_for_such() {
        for ours in ["hosts_v1_1", "hosts_v1_1597073300783716678", "hosts_v1_00000000000000000000"] {
            assert_eq!(Table::parse(ours).unwrap().to_string(), ours);
        }
        let others = [
            "hosts",
            "hosts_v1_",
            "hostsXforeign",
            "hosts_v2_1",
            "hosts_v1_1a",
            "hosts_v1_1\"",
            "Hosts_v1_1",
            "hosts_v1_1 ",
            "hosts_v1_-1",
            "hosts_v1_000000000000000000001",
            "hosts_v1_١",
            "xhosts_v1_1",
            "hosts_v1_1\n",
        ];
        for other in others {
            assert_eq!(Table::parse(other), None, "{other:?}");
        }
    }

    #[test]
    fn names_follow_the_version() {
        let version = Version::at(Timestamp::from_nanosecond(1_597_073_300_783_716_678).unwrap());
        assert_eq!(version.to_string(), "1_1597073300783716678");
        assert_eq!(version.table().to_string(), "hosts_v1_1597073300783716678");
        assert_eq!(version.connector("my-app"), "cyndi-my-app-1-1597073300783716678");
        assert_eq!(version.table().quoted(), "\"inventory\".\"hosts_v1_1597073300783716678\"");
        assert_eq!(Table::parse("hosts_v1_5").unwrap().version().to_string(), "1_5");
        assert_eq!(Version::at(Timestamp::MIN).to_string(), "1_0");
        assert_eq!(Version::of_connector(&version.connector("my-app"), "my-app"), Some(version));
        for (name, app) in [
            ("cyndi-my-app-1-5", "my"),
            ("cyndi-a-1-1-5", "a"),
            ("cyndi-a-2-5", "a"),
            ("cyndi-a-1-5x", "a"),
            ("cyndi-a-1-", "a"),
            ("xcyndi-a-1-5", "a"),
        ] {
            assert_eq!(Version::of_connector(name, app), None, "{name} of {app}");
        }
    }

    #[test]
    fn quotes_in_identifiers_end_nothing() {
        assert_eq!(quoted("a\"; DROP TABLE x; --"), "\"a\"\"; DROP TABLE x; --\"");
        assert_eq!(quoted("a\0b"), "\"ab\"");
    }
}
