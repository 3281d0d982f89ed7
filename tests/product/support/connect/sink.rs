//! A task of a JDBC sink: reads its partitions from their beginning, runs records through the transforms that are configured, and
//! upserts or deletes rows. What it has not committed it reads again.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls};

use super::config::transforms;
use super::group::{Group, Shared};
use super::topic;
use crate::soak::Random;

/// How often a task that has read everything looks for more.
const POLL: Duration = Duration::from_millis(5);
/// One batch in so many is read again, as after a rebalance.
const AGAIN_ONE_IN: usize = 4;

pub(super) struct Job {
    shared: Arc<Shared>,
    connector: String,
    id: usize,
    config: BTreeMap<String, String>,
    environment: BTreeMap<String, String>,
    topic: PathBuf,
    lag: Duration,
    random: Random,
}

/// A row, or that it is to go.
type Row = (String, Option<Value>);

impl Job {
    pub(super) fn new(
        shared: &Arc<Shared>,
        group: &mut Group,
        connector: &str,
        id: usize,
        config: &BTreeMap<String, String>,
    ) -> Self {
        let (environment, lag, random) = group.surroundings();
        let topic = shared.topics.join(&config["topics"]);
        let (shared, connector, config) = (Arc::clone(shared), connector.to_owned(), config.clone());
        Self { shared, connector, id, config, environment, topic, lag, random }
    }

    pub(super) async fn run(mut self) {
        let Err(cause) = self.work().await;
        let trace = format!(
            "org.apache.kafka.connect.errors.ConnectException: Exiting WorkerSinkTask due to unrecoverable exception.\n\tat \
             org.apache.kafka.connect.runtime.WorkerSinkTask.deliverMessages(WorkerSinkTask.java:632)\nCaused by: {cause}"
        );
        self.shared.group.lock().unwrap().failed(&self.connector, self.id, trace);
    }

    async fn work(&mut self) -> Result<std::convert::Infallible, String> {
        let count: usize = self.config["tasks.max"].parse().unwrap();
        let own: Vec<usize> =
            (0..topic::PARTITIONS).filter(|partition| partition % count == self.id).collect();
        if own.is_empty() {
            return std::future::pending().await;
        }
        let client = self.connect().await?;
        let batch: usize = self.config["batch.size"].parse().unwrap();
        let mut positions: BTreeMap<usize, usize> = own.iter().map(|partition| (*partition, 0)).collect();
        let (mut length, mut partitions) = (0, vec![Vec::new(); topic::PARTITIONS]);
        loop {
            let now = std::fs::metadata(&self.topic).map_or(0, |about| about.len());
            if now != length {
                (length, partitions) = (now, topic::read(&self.topic));
            }
            let behind: Vec<usize> =
                own.iter().copied().filter(|at| positions[at] < partitions[*at].len()).collect();
            if behind.is_empty() {
                sleep(POLL).await;
                continue;
            }
            sleep(self.lag).await;
            let partition = *self.random.of(&behind);
            let from = positions[&partition];
            let to = partitions[partition].len().min(from + batch);
            for record in &partitions[partition][from..to] {
                if let Some(row) = self.transform(record)? {
                    self.write(&client, &row).await?;
                }
            }
            // Not committed in time: read again from there, or from somewhere before.
            let again = self.random.one_in(AGAIN_ONE_IN).then(|| self.random.below(to));
            positions.insert(
                partition,
                again.filter(|_| from > 0).map_or(to, |at| at.max(from.saturating_sub(batch))),
            );
        }
    }

    fn setting(&self, key: &str) -> String {
        let mut text = self.config.get(key).cloned().unwrap_or_default();
        for (name, value) in &self.environment {
            text = text.replace(&format!("${{env:{name}}}"), value);
        }
        text
    }

    async fn connect(&self) -> Result<Client, String> {
        let url = self.setting("connection.url");
        let unusable = || format!("java.sql.SQLException: No suitable driver found for {url}");
        let (place, _) = url
            .strip_prefix("jdbc:postgresql://")
            .and_then(|rest| rest.split_once('?'))
            .ok_or_else(unusable)?;
        let (host, database) = place.split_once('/').ok_or_else(unusable)?;
        let (host, port) = host.split_once(':').ok_or_else(unusable)?;
        let mut login = tokio_postgres::Config::new();
        login.host(host).port(port.parse().map_err(|_| unusable())?).dbname(database);
        login.user(self.setting("connection.user")).password(self.setting("connection.password"));
        let refused = |error: tokio_postgres::Error| format!("org.postgresql.util.PSQLException: {error}");
        let (client, connection) = login.connect(NoTls).await.map_err(refused)?;
        tokio::spawn(connection);
        Ok(client)
    }

    /// What becomes of a record; nothing where a filter holds it back.
    fn transform(&self, record: &Value) -> Result<Option<Row>, String> {
        let key = record["key"].as_str().unwrap().to_owned();
        let mut value = Some(record["value"].clone());
        for name in transforms(&self.config) {
            let of = |member: &str| {
                self.config.get(&format!("transforms.{name}.{member}")).map_or("", String::as_str)
            };
            let class = of("type").rsplit('.').next().unwrap_or_default();
            match class {
                "Filter" if !holds(of("if"), record)? => return Ok(None),
                "DropIf$Value" if holds(of("if"), record)? => value = None,
                "Filter" | "DropIf$Value" | "InjectSchema$Key" | "InjectSchema$Value" => {}
                "ExtractField$Value" => value = value.map(|value| value[of("field")].clone()),
                "FilterFields$Value" => {
                    let allowed: Vec<&str> = of("allowlist").split(',').collect();
                    if let Some(members) = value.as_mut().and_then(|value| value[of("field")].as_object_mut())
                    {
                        members.retain(|member, _| allowed.contains(&member.as_str()));
                    }
                }
                "FieldToJson$Value" => {
                    if let Some(value) = value.as_mut().filter(|value| !value[of("originalField")].is_null())
                    {
                        value[of("destinationField")] = Value::String(value[of("originalField")].to_string());
                    }
                }
                other => return Err(format!("java.lang.ClassNotFoundException: {other}")),
            }
        }
        Ok(Some((key, value)))
    }

    async fn write(&self, client: &Client, (key, value): &Row) -> Result<(), String> {
        let table: Vec<_> =
            self.config["table.name.format"].split('.').map(|part| format!("\"{part}\"")).collect();
        let table = table.join(".");
        let failed = |error: tokio_postgres::Error| match error.as_db_error() {
            Some(told) if told.code().code() == "42P01" => format!(
                "io.confluent.connect.jdbc.sink.TableAlterOrCreateException: Table {table} is missing and auto-creation is disabled"
            ),
            _ => format!("java.sql.BatchUpdateException: {error}"),
        };
        let Some(value) = value else {
            let delete = format!("DELETE FROM {table} WHERE id = $1::text::uuid");
            return client.execute(&delete, &[key]).await.map(drop).map_err(failed);
        };
        let schema: Value =
            serde_json::from_str(&self.setting("transforms.injectSchemaValue.schema")).unwrap();
        let (mut columns, mut places, mut sets) =
            (vec!["id".to_owned()], vec!["$1::text::uuid".to_owned()], Vec::new());
        let mut values: Vec<Option<String>> = vec![Some(key.clone())];
        for field in schema["fields"].as_array().unwrap() {
            let name = field["field"].as_str().unwrap();
            let cast = field["name"]
                .as_str()
                .and_then(|named| named.split_once("pgtype="))
                .map(|(_, cast)| format!("::{cast}"));
            values.push(value[name].as_str().map(ToOwned::to_owned));
            columns.push(format!("\"{name}\""));
            places.push(format!("${}::text{}", values.len(), cast.unwrap_or_default()));
            sets.push(format!("\"{name}\" = EXCLUDED.\"{name}\""));
        }
        let upsert = format!(
            "INSERT INTO {table} ({}) VALUES ({}) ON CONFLICT (id) DO UPDATE SET {}",
            columns.join(", "),
            places.join(", "),
            sets.join(", ")
        );
        let values: Vec<&(dyn ToSql + Sync)> =
            values.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
        client.execute(&upsert, &values).await.map(drop).map_err(failed)
    }
}

/// Whether a condition of a script holds for a record. Those that are known: an age, a header, the value of a header.
fn holds(condition: &str, record: &Value) -> Result<bool, String> {
    let unknown = || format!("javax.script.ScriptException: {condition}");
    if let Some(rest) = condition.strip_prefix("(Date.now() - record.timestamp()) < ") {
        let days: i64 = rest.split(' ').next().unwrap_or_default().parse().map_err(|_| unknown())?;
        let age = jiff::Timestamp::now().as_millisecond() - record["timestamp"].as_i64().unwrap();
        return Ok(age < days * 24 * 60 * 60 * 1000);
    }
    let plain = condition.trim_start_matches("!!");
    let rest = plain.strip_prefix("record.headers().lastWithName('").ok_or_else(unknown)?;
    let (header, rest) = rest.split_once("').value()").ok_or_else(unknown)?;
    let value = record["headers"][header].as_str();
    match rest.trim().strip_prefix("== ") {
        None if rest.is_empty() => Ok(value.is_some_and(|value| !value.is_empty())),
        Some(literal) => Ok(value == Some(literal.trim_matches('\''))),
        None => Err(unknown()),
    }
}
