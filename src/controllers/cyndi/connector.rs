//! Builds the connector that fills a table (name, labels and configuration), and compares an existing one with it.
//! Pure.
//!
//! The configuration is built as a map, not by filling in a template: a quote in a filter stays a quote.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Value, json};

use super::config::Config;
use super::connector_config::Configuration;
use super::crd::CyndiPipelineSpec;
use super::names::{SCHEMA, Version};
use crate::telemetry::Secrets;

/// The Kafka Connect plugin that writes into databases.
pub const CLASS: &str = "io.confluent.connect.jdbc.JdbcSinkConnector";
/// The labels of connectors.
pub const CLUSTER: &str = "strimzi.io/cluster";
pub const APP: &str = "cyndi/appName";
pub const INSIGHTS_ONLY: &str = "cyndi/insightsOnly";
pub const MAX_AGE: &str = "cyndi/maxAge";
pub const OWNER: &str = "cyndi/owner";

/// The copied fields, in this order.
const FIELDS: &str = "account,org_id,display_name,tags,updated,created,last_check_in,stale_timestamp,system_profile,insights_id,\
                      reporter,per_reporter_staleness,groups";
/// The Java package of the platform's transforms.
const TRANSFORMS: &str = "com.redhat.insights.kafka.connect.transforms";
/// The member with the password, or a reference to it.
const PASSWORD: &str = "connection.password";
/// Tells the sink the PostgreSQL type of a string.
const TYPE_NAME: &str = "com.redhat.cloud.inventory.syndication.pgtype";

/// The desired connector.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub tasks: i64,
    pub paused: bool,
    /// The configuration without class and number of tasks, which are fields of their own in Strimzi.
    pub config: Configuration,
}

/// How the connector gets the login of its database.
#[derive(Clone, PartialEq)]
pub enum Login {
    /// From environment variables of the Kafka Connect workers.
    Environment,
    /// In the connector itself, readable by everybody who may read it: for temporary environments.
    Literal { host: String, port: String, name: String, user: String, password: String },
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Environment => "Environment",
            Self::Literal { .. } => "Literal(..)",
        })
    }
}

impl Login {
    /// Returns the secrets in a connector with this login.
    pub(super) fn secrets(&self) -> Secrets {
        match self {
            Self::Environment => Secrets::default(),
            Self::Literal { password, .. } => Secrets::of([password.as_str()]),
        }
    }
}

impl Found {
    /// Returns the secrets of an existing connector, whose login may be an older one.
    pub(super) fn secrets(&self) -> Secrets {
        let literal = self.config.get(PASSWORD).filter(|text| !text.starts_with("${"));
        Secrets::of(literal.map(String::as_str))
    }
}

impl Wanted {
    /// Creates the connector of `version` for a pipeline with the uid `owner`.
    #[must_use]
    pub fn of(
        version: &Version,
        owner: &str,
        config: &Config,
        spec: &CyndiPipelineSpec,
        login: &Login,
    ) -> Self {
        let labels = [
            (CLUSTER, config.connect_cluster.clone()),
            (APP, spec.app_name.clone()),
            (INSIGHTS_ONLY, spec.insights_only.to_string()),
            (MAX_AGE, config.max_age.to_string()),
            (OWNER, owner.to_owned()),
        ];
        Self {
            name: version.connector(&spec.app_name),
            labels: labels.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            tasks: config.tasks,
            paused: spec.connector_paused,
            config: configuration(version, config, spec, login),
        }
    }
}

fn configuration(
    version: &Version,
    config: &Config,
    spec: &CyndiPipelineSpec,
    login: &Login,
) -> Configuration {
    let mut map = Building::default();
    map.put("topics", &config.topic);
    map.all(&[
        ("key.converter", "org.apache.kafka.connect.storage.StringConverter"),
        ("value.converter", "org.apache.kafka.connect.json.JsonConverter"),
        ("value.converter.schemas.enable", "false"),
        ("dialect.name", "EnhancedPostgreSqlDatabaseDialect"),
        ("auto.create", "false"),
        ("insert.mode", "upsert"),
        ("delete.enabled", "true"),
        ("pk.mode", "record_key"),
        ("pk.fields", "id"),
        ("fields.whitelist", FIELDS),
        ("errors.tolerance", "all"),
        ("errors.deadletterqueue.context.headers.enable", "true"),
        ("errors.retry.delay.max.ms", "60000"),
        ("errors.retry.timeout", "600000"),
        ("errors.log.enable", "true"),
        ("errors.log.include.messages", "true"),
        ("connection.attempts", "60"),
        ("connection.backoff.ms", "10000"),
    ]);
    map.put("batch.size", &config.batch.to_string());
    map.put("table.name.format", &format!("{SCHEMA}.{}", version.table()));
    map.put("errors.deadletterqueue.topic.name", &config.dead_letters);
    map.put("errors.deadletterqueue.topic.replication.factor", &config.replication_factor.to_string());
    connection(&mut map, config, &spec.app_name, login);
    transforms(&mut map, config, spec);
    map.0.extend(config.connector.0.clone());
    Configuration(map.0)
}

fn connection(map: &mut Building, config: &Config, app: &str, login: &Login) {
    let variable = format!("{}_DB", app.to_uppercase().replace('-', "_"));
    let placed = |what: &str| format!("${{env:{variable}_{what}}}");
    let (host, port, name, user, password) = match login {
        Login::Environment => {
            (placed("HOSTNAME"), placed("PORT"), placed("NAME"), placed("USERNAME"), placed("PASSWORD"))
        }
        Login::Literal { host, port, name, user, password } => {
            (host.clone(), port.clone(), name.clone(), user.clone(), password.clone())
        }
    };
    let mode = config.ssl_mode.as_str();
    let root = config.ssl_root.as_ref().map(|path| format!("&sslrootcert={path}")).unwrap_or_default();
    map.put("connection.url", &format!("jdbc:postgresql://{host}:{port}/{name}?sslmode={mode}{root}"));
    map.put("connection.user", &user);
    map.put(PASSWORD, &password);
}

fn transforms(map: &mut Building, config: &Config, spec: &CyndiPipelineSpec) {
    let age = config.max_age;
    let recent = format!("(Date.now() - record.timestamp()) < {age} * 24 * 60 * 60 * 1000");
    map.transform("timestampFilter", &format!("{TRANSFORMS}.Filter"), &[("if", &recent)]);
    if spec.insights_only {
        let condition = "!!record.headers().lastWithName('insights_id').value()";
        map.transform("insightsFilter", &format!("{TRANSFORMS}.Filter"), &[("if", condition)]);
    }
    for filter in &spec.additional_filters {
        let Some(name) = filter.get("name") else { continue };
        map.1.push(name.clone());
        for (key, value) in
            filter.iter().filter(|(key, _)| !matches!(key.as_str(), "name" | "where" | "join"))
        {
            map.put(&format!("transforms.{name}.{key}"), value);
        }
    }
    let deleted = "record.headers().lastWithName('event_type').value() == 'delete'";
    map.transform("deleteToTombstone", &format!("{TRANSFORMS}.DropIf$Value"), &[("if", deleted)]);
    let extract = "org.apache.kafka.connect.transforms.ExtractField$Value";
    map.transform("extractHost", extract, &[("field", "host")]);
    let filter = format!("{TRANSFORMS}.FilterFields$Value");
    map.transform(
        "systemProfileFilter",
        &filter,
        &[("field", "system_profile"), ("allowlist", &config.allowed)],
    );
    let json = format!("{TRANSFORMS}.FieldToJson$Value");
    for (name, field) in [
        ("systemProfileToJson", "system_profile"),
        ("tagsToJson", "tags"),
        ("perReporterStalenessToJson", "per_reporter_staleness"),
        ("groupsToJson", "groups"),
    ] {
        map.transform(name, &json, &[("originalField", field), ("destinationField", field)]);
    }
    let key = json!({"type": "string", "optional": false, "name": format!("{TYPE_NAME}=uuid")}).to_string();
    map.transform("injectSchemaKey", &format!("{TRANSFORMS}.InjectSchema$Key"), &[("schema", &key)]);
    let value = value_schema().to_string();
    map.transform("injectSchemaValue", &format!("{TRANSFORMS}.InjectSchema$Value"), &[("schema", &value)]);
    let names = map.1.join(",");
    map.put("transforms", &names);
}

fn value_schema() -> Value {
    let fields: Vec<Value> = FIELDS
        .split(',')
        .map(|field| {
            let optional = matches!(field, "account" | "org_id" | "insights_id" | "groups");
            let mut schema = json!({"field": field, "type": "string", "optional": optional});
            let named = match field {
                "tags" | "system_profile" | "per_reporter_staleness" | "groups" => Some("jsonb"),
                "updated" | "created" | "last_check_in" | "stale_timestamp" => Some("timestamptz"),
                "insights_id" => Some("uuid"),
                _ => None,
            };
            if let (Some(named), Some(members)) = (named, schema.as_object_mut()) {
                members.insert("name".to_owned(), Value::from(format!("{TYPE_NAME}={named}")));
            }
            schema
        })
        .collect();
    json!({"type": "struct", "fields": fields, "optional": false})
}

/// A configuration under construction, and its transforms in their order.
#[derive(Default)]
struct Building(BTreeMap<String, String>, Vec<String>);

impl Building {
    fn put(&mut self, key: &str, value: &str) {
        self.0.insert(key.to_owned(), value.to_owned());
    }

    fn all(&mut self, members: &[(&str, &str)]) {
        members.iter().for_each(|(key, value)| self.put(key, value));
    }

    fn transform(&mut self, name: &str, class: &str, settings: &[(&str, &str)]) {
        self.1.push(name.to_owned());
        self.put(&format!("transforms.{name}.type"), class);
        settings.iter().for_each(|(key, value)| self.put(&format!("transforms.{name}.{key}"), value));
    }
}

/// An existing connector.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub config: Configuration,
    pub paused: bool,
    /// The part that failed, if any: the connector, or one of its tasks.
    pub failed: Option<String>,
    /// Whether what failed is restarted before the table is rebuilt because of it.
    pub restartable: bool,
    /// Whether it is being deleted.
    pub leaving: bool,
}

/// Converts a configuration for comparison: a number equals the string with the same text.
#[must_use]
pub fn as_texts(config: &Value) -> Configuration {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    Configuration(
        config.as_object().into_iter().flatten().map(|(key, value)| (key.clone(), text(value))).collect(),
    )
}

/// The failed part of a connector, from the `status` that Kafka Connect reports. Stack traces are left out: they
/// quote records.
#[must_use]
pub fn failed(status: &Value) -> Option<String> {
    if status["connector"]["state"] == "FAILED" {
        return Some("the connector".to_owned());
    }
    let failed = status["tasks"].as_array()?.iter().filter(|task| task["state"] == "FAILED");
    let ids: BTreeSet<_> = failed.map(|task| task["id"].to_string()).collect();
    let ids: Vec<_> = ids.into_iter().collect();
    (!ids.is_empty()).then(|| format!("task {}", ids.join(", ")))
}

impl Wanted {
    /// Returns the first difference from `found`: a failure, labels in their order, configuration.
    #[must_use]
    pub fn deviation(&self, found: &Found) -> Option<String> {
        if let Some(failed) = found.failed.as_ref().filter(|_| !found.restartable) {
            return Some(format!("Connector {} is in the FAILED state: {failed}", self.name));
        }
        for label in [APP, INSIGHTS_ONLY, CLUSTER, MAX_AGE] {
            let (is, should) = (found.labels.get(label), self.labels.get(label));
            if is != should {
                let shown = |value: Option<&String>| value.map_or("", String::as_str).to_owned();
                return Some(format!(
                    "Connector {}: label {label} is \"{}\", not \"{}\"",
                    self.name,
                    shown(is),
                    shown(should)
                ));
            }
        }
        // Values may be secrets, so only the name is reported.
        let keys = self.config.keys().chain(found.config.keys());
        let other = keys.filter(|key| self.config.get(*key) != found.config.get(*key)).min()?;
        Some(format!("Connector {}: the configuration differs in {other}", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> CyndiPipelineSpec {
        CyndiPipelineSpec { app_name: "my-app".to_owned(), ..CyndiPipelineSpec::default() }
    }

    fn wanted(spec: &CyndiPipelineSpec, login: &Login) -> Wanted {
        let config = Config::read("n", &BTreeMap::new(), &BTreeMap::new(), spec).unwrap();
        Wanted::of(&Version::parse("1_5").unwrap(), "uid", &config, spec, login)
    }

    fn same(wanted: &Wanted) -> Found {
        Found {
            name: wanted.name.clone(),
            labels: wanted.labels.clone(),
            config: wanted.config.clone(),
            ..Found::default()
        }
    }

    #[test]
    fn cy_05_names_labels_and_login_by_the_environment() {
        let made = wanted(&spec(), &Login::Environment);
        assert_eq!(made.name, "cyndi-my-app-1-5");
        let labels: Vec<_> = made.labels.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let expected = [
            (APP, "my-app"),
            (INSIGHTS_ONLY, "false"),
            (MAX_AGE, "45"),
            (OWNER, "uid"),
            (CLUSTER, "xjoin-kafka-connect-strimzi"),
        ];
        assert_eq!(labels, expected);
        let at = |key: &str| made.config[key].as_str();
        let url = "jdbc:postgresql://${env:MY_APP_DB_HOSTNAME}:${env:MY_APP_DB_PORT}/${env:MY_APP_DB_NAME}?sslmode=disable";
        assert_eq!(at("connection.url"), url);
        assert_eq!(
            (at("connection.user"), at("connection.password")),
            ("${env:MY_APP_DB_USERNAME}", "${env:MY_APP_DB_PASSWORD}")
        );
        assert_eq!(
            (at("table.name.format"), at("topics")),
            ("inventory.hosts_v1_5", "platform.inventory.events")
        );
        for not_settable in ["connector.class", "tasks.max"] {
            assert!(!made.config.contains_key(not_settable));
        }
        let transforms = "timestampFilter,deleteToTombstone,extractHost,systemProfileFilter,systemProfileToJson,tagsToJson,\
                          perReporterStalenessToJson,groupsToJson,injectSchemaKey,injectSchemaValue";
        assert_eq!(at("transforms"), transforms);
        assert_eq!(
            at("transforms.timestampFilter.if"),
            "(Date.now() - record.timestamp()) < 45 * 24 * 60 * 60 * 1000"
        );
        let schema: Value = serde_json::from_str(at("transforms.injectSchemaValue.schema")).unwrap();
        assert_eq!(schema["fields"].as_array().unwrap().len(), 13);
    }

    #[test]
    fn cy_05_quotes_newlines_and_placeholders_of_filters_survive() {
        let condition = "a == \"b\" && c == 'd'\n\\ ${x} {{.y}}";
        let filter: BTreeMap<_, _> =
            [("name", "mine"), ("where", "w"), ("join", "j"), ("type", "T"), ("if", condition)]
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .into();
        let spec = CyndiPipelineSpec { additional_filters: vec![filter], insights_only: true, ..spec() };
        let made = wanted(&spec, &Login::Environment);
        assert_eq!(made.config["transforms.mine.if"], condition);
        assert!(
            made.config["transforms"].starts_with("timestampFilter,insightsFilter,mine,deleteToTombstone,")
        );
        for left_out in ["name", "where", "join"] {
            assert!(!made.config.contains_key(&format!("transforms.mine.{left_out}")));
        }
    }

    #[test]
    fn cy_05_what_the_configmap_has_goes_over_what_is_built() {
        let data = [("connector.config".to_owned(), "{\"batch.size\": 7, \"new\": \"x\"}".to_owned())].into();
        let config = Config::read("n", &BTreeMap::new(), &data, &spec()).unwrap();
        let made = Wanted::of(&Version::parse("1_5").unwrap(), "uid", &config, &spec(), &Login::Environment);
        assert_eq!((made.config["batch.size"].as_str(), made.config["new"].as_str()), ("7", "x"));
    }

    #[test]
    fn logins_show_themselves_to_nobody() {
        let text = || "hunter2".to_owned();
        let login =
            Login::Literal { host: text(), port: text(), name: text(), user: text(), password: text() };
        assert_eq!(format!("{login:?}"), "Literal(..)");
        let made = wanted(&spec(), &login);
        assert_eq!(made.config["connection.password"], "hunter2");
        // The debug output of connectors contains only the names.
        for shown in [format!("{made:?}"), format!("{:#?}", same(&made))] {
            assert!(!shown.contains("hunter2") && shown.contains("\"connection.password\""), "{shown}");
        }
    }

    #[test]
    fn cy_02_08_a_failed_connector_or_task_is_seen() {
        let status = |connector: &str, task: &str| json!({"connector": {"state": connector}, "tasks": [{"id": 0, "state": "RUNNING"}, {"id": 1, "state": task, "trace": "x"}]});
        assert_eq!(super::failed(&status("RUNNING", "RUNNING")), None);
        assert_eq!(super::failed(&status("RUNNING", "FAILED")).unwrap(), "task 1");
        assert_eq!(super::failed(&status("FAILED", "RUNNING")).unwrap(), "the connector");
        assert_eq!(super::failed(&Value::Null), None);
    }

    #[test]
    fn what_is_started_again_is_no_deviation_yet() {
        let made = wanted(&spec(), &Login::Environment);
        let found = Found { failed: Some("task 0".to_owned()), restartable: true, ..same(&made) };
        assert_eq!(made.deviation(&found), None);
        let given_up = Found { restartable: false, ..found };
        assert!(made.deviation(&given_up).unwrap().contains("FAILED"));
    }

    #[test]
    fn cy_02_08_deviations_come_in_their_order() {
        let made = wanted(&spec(), &Login::Environment);
        assert_eq!(made.deviation(&same(&made)), None);
        let mut found = same(&made);
        found.config.0.insert("batch.size".to_owned(), "9".to_owned());
        assert!(made.deviation(&found).unwrap().ends_with("differs in batch.size"));
        let order = [MAX_AGE, CLUSTER, INSIGHTS_ONLY, APP];
        for label in order {
            found.labels.insert(label.to_owned(), "x".to_owned());
            assert!(made.deviation(&found).unwrap().contains(label), "{label}");
        }
        found.failed = Some("task 0".to_owned());
        assert!(made.deviation(&found).unwrap().contains("FAILED"));
        let numbers = json!({"batch.size": 100, "auto.create": false});
        let texts = [("auto.create", "false"), ("batch.size", "100")];
        assert_eq!(as_texts(&numbers).0, texts.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
    }
}
