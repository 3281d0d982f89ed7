//! Reads the configuration of a pipeline: its spec overrides the ConfigMap of its namespace, which overrides the global
//! ConfigMap, which overrides defaults. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use super::connector_config::Configuration;
use super::crd::CyndiPipelineSpec;
use super::hash;

/// Name of the ConfigMaps, and namespace of the global one.
pub const CONFIG_MAP: &str = "cyndi";
pub const GLOBAL_NAMESPACE: &str = "cyndi";

/// Settings that do not affect the table and the connector: changing them is no reason for a rebuild.
const NOT_HASHED: [&str; 8] = [
    "db.initialPasswordSecret",
    "standard.interval",
    "validation.interval",
    "validation.attempts.threshold",
    "validation.percentage.threshold",
    "init.validation.interval",
    "init.validation.attempts.threshold",
    "init.validation.percentage.threshold",
];

/// The shortest interval in seconds: a configured 0 must not become a busy loop.
const SHORTEST: i64 = 1;

/// How often, how long and how exactly a table is compared with the inventory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Validation {
    pub interval: Duration,
    /// Failures in a row after which the pipeline is rebuilt.
    pub attempts: i64,
    /// The percentage of hosts that may differ.
    pub percentage: i64,
}

/// How connections to databases are secured, as libpq names it.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum SslMode {
    #[default]
    Disable,
    /// Encrypted, without verifying the server.
    Require,
    /// Verifies that the server's certificate is signed by a trusted authority.
    VerifyCa,
    /// Like `verify-ca`, and verifies the server's name.
    VerifyFull,
}

impl SslMode {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let modes = [Self::Disable, Self::Require, Self::VerifyCa, Self::VerifyFull];
        modes.into_iter().find(|mode| mode.as_str() == text)
    }
}

/// The complete configuration of a pipeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub topic: String,
    pub connect_cluster: String,
    pub inventory_secret: String,
    pub inventory_schema: String,
    pub replication_factor: i64,
    pub dead_letters: String,
    /// Additional members of the connector's configuration, which override the generated ones.
    pub connector: Configuration,
    pub tasks: i64,
    pub batch: i64,
    /// The maximum age of hosts in days.
    pub max_age: i64,
    /// The copied keys of system profiles, separated by commas.
    pub allowed: String,
    /// SQL statements that create a table instead of the built-in ones.
    pub table: Option<String>,
    pub ssl_mode: SslMode,
    pub ssl_root: Option<String>,
    /// A Secret with the initial password (`db.password`) of a database, from before the application's Secret had its
    /// own.
    pub initial_secret: Option<String>,
    pub standard_interval: Duration,
    pub running: Validation,
    pub initial: Validation,
    /// The hash of the ConfigMaps.
    pub hash: String,
}

/// An error in the ConfigMaps.
#[derive(Clone, Debug, thiserror::Error, PartialEq)]
#[error("Error parsing cyndi configmap in {namespace}: {what}")]
pub struct ConfigError {
    /// The namespace of the pipeline.
    pub namespace: String,
    pub what: Mistake,
}

#[derive(Clone, Debug, thiserror::Error, PartialEq)]
pub enum Mistake {
    #[error("\"{value}\" is not a valid value for \"{key}\"")]
    Value { key: &'static str, value: String },
    /// Upstream evaluates it as a Go template, which this program does not support.
    #[error(
        "\"connector.config\" is a template or no JSON object of texts, numbers and booleans; write plain members, which go over the \
         built ones, or remove the key"
    )]
    Connector,
}

impl Config {
    /// Reads the configuration of a pipeline in `namespace`.
    ///
    /// # Errors
    /// [`ConfigError`] with the first invalid key.
    pub fn read(
        namespace: &str,
        global: &BTreeMap<String, String>,
        local: &BTreeMap<String, String>,
        spec: &CyndiPipelineSpec,
    ) -> Result<Self, ConfigError> {
        let mut data = global.clone();
        data.extend(local.clone());
        Self::of(&data, spec).map_err(|what| ConfigError { namespace: namespace.to_owned(), what })
    }

    fn of(data: &BTreeMap<String, String>, spec: &CyndiPipelineSpec) -> Result<Self, Mistake> {
        let read = Reader(data);
        let mut running = read.validation(
            ["validation.interval", "validation.attempts.threshold", "validation.percentage.threshold"],
            [1800, 3, 5],
        )?;
        let mut initial = read.validation(
            [
                "init.validation.interval",
                "init.validation.attempts.threshold",
                "init.validation.percentage.threshold",
            ],
            [60, 30, 5],
        )?;
        if let Some(threshold) = spec.validation_threshold {
            running.percentage = threshold;
            initial.percentage = threshold;
        }
        let over =
            |own: &Option<String>, key, default| own.clone().unwrap_or_else(|| read.text(key, default));
        let mode = read.text("db.ssl.mode", "disable");
        let ssl_mode =
            SslMode::parse(&mode).ok_or(Mistake::Value { key: "db.ssl.mode", value: mode.clone() })?;
        Ok(Self {
            topic: over(&spec.topic, "connector.topic", "platform.inventory.events"),
            connect_cluster: over(&spec.connect_cluster, "connect.cluster", "xjoin-kafka-connect-strimzi"),
            inventory_secret: over(
                &spec.inventory_db_secret,
                "inventory.dbSecret",
                "host-inventory-read-only-db",
            ),
            inventory_schema: read.text("inventory.dbSchema", "public"),
            replication_factor: read.number("connector.topic.replication.factor", 1)?,
            dead_letters: read.text("connector.deadletterqueue.topic.name", "platform.cyndi.dlq"),
            connector: read.connector()?,
            tasks: read.number("connector.tasks.max", 16)?,
            batch: read.number("connector.batch.size", 100)?,
            max_age: match spec.max_age {
                Some(days) => days,
                None => read.number("connector.max.age", 45)?,
            },
            allowed: read.text("connector.allowlist.sp", "sap_system,sap_sids"),
            table: data.get("db.schema").cloned(),
            ssl_mode,
            ssl_root: data.get("db.ssl.root.cert").filter(|path| !path.is_empty()).cloned(),
            initial_secret: data.get("db.initialPasswordSecret").filter(|name| !name.is_empty()).cloned(),
            standard_interval: seconds(read.number("standard.interval", 120)?),
            running,
            initial,
            hash: hash::of_data(data, |key| NOT_HASHED.contains(&key)),
        })
    }

    /// Returns the validation settings during the first sync of a table, or later.
    #[must_use]
    pub fn validation(&self, initial: bool) -> Validation {
        if initial { self.initial } else { self.running }
    }
}

/// Returns the hash of the parts of a spec that affect the table. Pausing or not managing the connector does not.
#[must_use]
pub fn spec_hash(spec: &CyndiPipelineSpec) -> String {
    hash::of(&CyndiPipelineSpec { managed_connectors: true, connector_paused: false, ..spec.clone() })
}

fn seconds(count: i64) -> Duration {
    Duration::from_secs(u64::try_from(count.max(SHORTEST)).unwrap_or(u64::MAX))
}

struct Reader<'a>(&'a BTreeMap<String, String>);

impl Reader<'_> {
    fn text(&self, key: &str, default: &str) -> String {
        self.0.get(key).cloned().unwrap_or_else(|| default.to_owned())
    }

    fn number(&self, key: &'static str, default: i64) -> Result<i64, Mistake> {
        let Some(value) = self.0.get(key) else { return Ok(default) };
        value.parse().map_err(|_| Mistake::Value { key, value: value.clone() })
    }

    fn validation(&self, keys: [&'static str; 3], defaults: [i64; 3]) -> Result<Validation, Mistake> {
        let [interval, attempts, percentage] = keys;
        Ok(Validation {
            interval: seconds(self.number(interval, defaults[0])?),
            attempts: self.number(attempts, defaults[1])?,
            percentage: self.number(percentage, defaults[2])?,
        })
    }

    fn connector(&self) -> Result<Configuration, Mistake> {
        let Some(text) = self.0.get("connector.config") else { return Ok(Configuration::default()) };
        if text.contains("{{") {
            return Err(Mistake::Connector);
        }
        let members: BTreeMap<String, serde_json::Value> =
            serde_json::from_str(text).map_err(|_| Mistake::Connector)?;
        let plain = |(key, value): (String, serde_json::Value)| match value {
            serde_json::Value::String(text) => Ok((key, text)),
            serde_json::Value::Bool(_) | serde_json::Value::Number(_) => Ok((key, value.to_string())),
            serde_json::Value::Null | serde_json::Value::Array(_) | serde_json::Value::Object(_) => {
                Err(Mistake::Connector)
            }
        };
        members.into_iter().map(plain).collect::<Result<_, _>>().map(Configuration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn read(global: &[(&str, &str)], local: &[(&str, &str)]) -> Result<Config, ConfigError> {
        Config::read("test", &data(global), &data(local), &CyndiPipelineSpec::default())
    }

    #[test]
    fn cy_03_defaults() {
        let expected = Config {
            topic: "platform.inventory.events".to_owned(),
            connect_cluster: "xjoin-kafka-connect-strimzi".to_owned(),
            inventory_secret: "host-inventory-read-only-db".to_owned(),
            inventory_schema: "public".to_owned(),
            replication_factor: 1,
            dead_letters: "platform.cyndi.dlq".to_owned(),
            connector: Configuration::default(),
            tasks: 16,
            batch: 100,
            max_age: 45,
            allowed: "sap_system,sap_sids".to_owned(),
            table: None,
            ssl_mode: SslMode::Disable,
            ssl_root: None,
            initial_secret: None,
            standard_interval: Duration::from_mins(2),
            running: Validation { interval: Duration::from_mins(30), attempts: 3, percentage: 5 },
            initial: Validation { interval: Duration::from_mins(1), attempts: 30, percentage: 5 },
            hash: "-1".to_owned(),
        };
        assert_eq!(read(&[], &[]), Ok(expected));
    }

    #[test]
    fn cy_03_the_spec_is_over_the_own_configmap_over_the_global_one() {
        let global =
            [("connect.cluster", "global"), ("connector.topic", "global"), ("connector.tasks.max", "2")];
        let config = read(&global, &[("connector.topic", "own")]).unwrap();
        assert_eq!(
            (config.connect_cluster.as_str(), config.topic.as_str(), config.tasks),
            ("global", "own", 2)
        );
        let spec = CyndiPipelineSpec {
            topic: Some("spec".to_owned()),
            max_age: Some(3),
            validation_threshold: Some(9),
            ..CyndiPipelineSpec::default()
        };
        let config =
            Config::read("test", &data(&global), &data(&[("connector.topic", "own")]), &spec).unwrap();
        assert_eq!((config.topic.as_str(), config.max_age), ("spec", 3));
        assert_eq!((config.running.percentage, config.initial.percentage), (9, 9));
    }

    #[test]
    fn cy_03_each_key_is_read() {
        let set = [
            ("connector.topic", "t"),
            ("connect.cluster", "c"),
            ("inventory.dbSecret", "s"),
            ("inventory.dbSchema", "i"),
            ("connector.topic.replication.factor", "2"),
            ("connector.deadletterqueue.topic.name", "d"),
            ("connector.config", "{\"x\": 1, \"y\": true, \"z\": \"q\\\"\"}"),
            ("connector.tasks.max", "3"),
            ("connector.batch.size", "4"),
            ("connector.max.age", "5"),
            ("connector.allowlist.sp", "a"),
            ("db.schema", "CREATE"),
            ("db.ssl.mode", "verify-full"),
            ("db.ssl.root.cert", "/ca"),
            ("db.initialPasswordSecret", "first"),
            ("standard.interval", "6"),
            ("validation.interval", "7"),
            ("validation.attempts.threshold", "8"),
            ("validation.percentage.threshold", "9"),
            ("init.validation.interval", "10"),
            ("init.validation.attempts.threshold", "11"),
            ("init.validation.percentage.threshold", "12"),
        ];
        let expected = Config {
            topic: "t".to_owned(),
            connect_cluster: "c".to_owned(),
            inventory_secret: "s".to_owned(),
            inventory_schema: "i".to_owned(),
            replication_factor: 2,
            dead_letters: "d".to_owned(),
            connector: Configuration(data(&[("x", "1"), ("y", "true"), ("z", "q\"")])),
            tasks: 3,
            batch: 4,
            max_age: 5,
            allowed: "a".to_owned(),
            table: Some("CREATE".to_owned()),
            ssl_mode: SslMode::VerifyFull,
            ssl_root: Some("/ca".to_owned()),
            initial_secret: Some("first".to_owned()),
            standard_interval: Duration::from_secs(6),
            running: Validation { interval: Duration::from_secs(7), attempts: 8, percentage: 9 },
            initial: Validation { interval: Duration::from_secs(10), attempts: 11, percentage: 12 },
            hash: hash::of_data(&data(&set), |key| NOT_HASHED.contains(&key)),
        };
        assert_eq!(read(&[], &set), Ok(expected));
    }

    #[test]
    fn cy_03_mistakes_are_told_in_the_words_of_upstream() {
        let wrong = |key: &str, value: &str| read(&[(key, value)], &[]).unwrap_err().to_string();
        let numbers = [
            "connector.topic.replication.factor",
            "connector.tasks.max",
            "connector.batch.size",
            "connector.max.age",
            "standard.interval",
            "validation.interval",
            "validation.attempts.threshold",
            "validation.percentage.threshold",
            "init.validation.interval",
            "init.validation.attempts.threshold",
            "init.validation.percentage.threshold",
        ];
        for key in numbers {
            let expected =
                format!("Error parsing cyndi configmap in test: \"abc\" is not a valid value for \"{key}\"");
            assert_eq!(wrong(key, "abc"), expected);
        }
        assert!(
            wrong("db.ssl.mode", "prefer").ends_with("\"prefer\" is not a valid value for \"db.ssl.mode\"")
        );
        for template in ["{\"a\": \"{{.Topic}}\"}", "[]", "{\"a\": {}}"] {
            assert!(wrong("connector.config", template).contains("is a template"), "{template}");
        }
    }

    #[test]
    fn cy_08_14_intervals_and_thresholds_are_no_reason_to_build_anew() {
        let before = read(&[("connect.cluster", "a")], &[]).unwrap().hash;
        for key in NOT_HASHED {
            assert_eq!(read(&[("connect.cluster", "a")], &[(key, "1")]).unwrap().hash, before, "{key}");
        }
        assert_ne!(read(&[("connect.cluster", "b")], &[]).unwrap().hash, before);
    }

    #[test]
    fn what_changes_a_table_changes_the_hash_of_the_spec() {
        let spec = CyndiPipelineSpec {
            app_name: "a".to_owned(),
            managed_connectors: true,
            ..CyndiPipelineSpec::default()
        };
        let before = spec_hash(&spec);
        let changed = [
            CyndiPipelineSpec { refresh: Some("now".to_owned()), ..spec.clone() },
            CyndiPipelineSpec { insights_only: true, ..spec.clone() },
            CyndiPipelineSpec { max_age: Some(1), ..spec.clone() },
        ];
        for spec in changed {
            assert_ne!(spec_hash(&spec), before, "{spec:?}");
        }
        let resting = CyndiPipelineSpec { managed_connectors: false, connector_paused: true, ..spec };
        assert_eq!(spec_hash(&resting), before);
    }
}
