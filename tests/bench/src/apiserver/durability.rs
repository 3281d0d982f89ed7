//! Kills a server during many writes and checks what is left: everything that was acknowledged, nothing that was never sent,
//! and no revision is used twice.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::Trouble;
use crate::client::{Access, Client};
use crate::load::config_maps;
use crate::report::{Bar, Report};
use crate::server::{Home, Kind, Server};

const WRITERS: usize = 8;
/// The number of objects of one writer.
const OBJECTS: usize = 6;
/// The server is killed after a random number of milliseconds below this.
const LONGEST: u64 = 250;
/// The seed of the random numbers, fixed so that failures are reproducible.
const SEED: u64 = 0x0ad1_9172_54a5_5eed;

/// What one writer knows: the last acknowledged state of each of its objects.
#[derive(Debug, Default)]
struct Known {
    /// The text of each object by name; None if it was deleted.
    acknowledged: BTreeMap<String, Option<String>>,
    /// The write that was sent and not acknowledged.
    under_way: Option<(String, Option<String>)>,
    revisions: Vec<u64>,
}

pub(crate) async fn measure(
    kind: &Kind,
    rounds: usize,
    who: &'static str,
    report: &mut Report,
) -> Result<(), Trouble> {
    let mut home = Some(Home::new(true)?);
    let mut known: Vec<Known> = (0..WRITERS).map(|_| Known::default()).collect();
    let mut given = BTreeSet::new();
    let (mut lost, mut repeated, mut written, mut random) = (0, 0, 0, SEED);
    for round in 0..rounds {
        let server = Server::start(kind, home.take()).await?;
        let newest = given.last().copied().unwrap_or(0);
        let (wrong, revision) = compared(&server, &mut known).await?;
        lost += wrong;
        repeated += u32::from(revision < newest);
        let mut writers = JoinSet::new();
        for (writer, known) in known.drain(..).enumerate() {
            writers.spawn(writes(server.access.clone(), writer, round, known));
        }
        sleep(Duration::from_millis(next(&mut random) % LONGEST)).await;
        home = Some(server.kill().await?);
        let mut back = BTreeMap::new();
        while let Some(done) = writers.join_next().await {
            let (writer, mut known) = done?;
            for revision in known.revisions.drain(..) {
                written += 1;
                repeated += u32::from(revision <= newest || !given.insert(revision));
            }
            back.insert(writer, known);
        }
        known = back.into_values().collect();
    }
    let server = Server::start(kind, home).await?;
    lost += compared(&server, &mut known).await?.0;
    server.stop().await?;
    report.add(who, ("kills under 8 writers", ""), Bar::None, f64::from(u32::try_from(rounds)?));
    report.add(who, ("writes acknowledged", ""), Bar::None, f64::from(written));
    report.add(who, ("objects lost or invented", ""), Bar::Most(0.0), f64::from(lost));
    report.add(who, ("revisions given twice", ""), Bar::Most(0.0), f64::from(repeated));
    Ok(())
}

/// Returns the number of wrong objects, and the revision of the store. An unacknowledged write may have happened or not.
async fn compared(server: &Server, known: &mut [Known]) -> Result<(u32, u64), Trouble> {
    let (code, list) =
        server.client().await?.send(Method::GET, &config_maps("default"), Bytes::new()).await?;
    if code != StatusCode::OK {
        return Err(format!("the list after a kill: {code}").into());
    }
    let items = list["items"].as_array().ok_or("no list")?;
    let mut found: BTreeMap<&str, &str> = BTreeMap::new();
    for item in items {
        if let (Some(name), Some(text)) = (item["metadata"]["name"].as_str(), item["data"]["text"].as_str()) {
            found.insert(name, text);
        }
    }
    let mut wrong = 0;
    for known in known {
        let under_way = known.under_way.take();
        if let Some((name, _)) = &under_way {
            known.acknowledged.entry(name.clone()).or_insert(None);
        }
        for (name, state) in &mut known.acknowledged {
            let now = found.remove(name.as_str()).map(str::to_owned);
            let done = under_way.as_ref().is_some_and(|(of, sent)| of == name && *sent == now);
            wrong += u32::from(*state != now && !done);
            *state = now;
        }
    }
    let invented = u32::try_from(found.len())?;
    let revision = list["metadata"]["resourceVersion"].as_str().unwrap_or_default().parse()?;
    Ok((wrong + invented, revision))
}

/// Creates, changes and deletes objects until the server no longer answers.
async fn writes(access: Access, writer: usize, round: usize, mut known: Known) -> (usize, Known) {
    if let Ok(mut client) = access.connect().await {
        for number in 0.. {
            let name = format!("w{writer}-{}", number % OBJECTS);
            let is_there = known.acknowledged.get(&name).is_some_and(Option::is_some);
            let text = (!is_there || number % 5 != 0)
                .then(|| format!("{round}-{number}-{}", "x".repeat(number % 7 * 200)));
            known.under_way = Some((name.clone(), text.clone()));
            let Ok(answer) = written(&mut client, &name, is_there, text.as_deref()).await else { break };
            known.revisions.extend(answer);
            known.under_way = None;
            known.acknowledged.insert(name, text);
        }
    }
    (writer, known)
}

/// Sends a write; returns its revision, if the response holds it.
async fn written(
    client: &mut Client,
    name: &str,
    is_there: bool,
    text: Option<&str>,
) -> Result<Option<u64>, Trouble> {
    let path = config_maps("default");
    let at = format!("{path}/{name}");
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": text}});
    let (method, path, body) = match (is_there, text) {
        (false, _) => (Method::POST, path, object),
        (true, Some(_)) => (Method::PUT, at, object),
        (true, None) => (Method::DELETE, at, Value::Null),
    };
    let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    let (code, answer) = client.send(method, &path, body).await?;
    if !code.is_success() {
        return Err(format!("{path}: {code} {answer}").into());
    }
    Ok(answer["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()))
}

/// Returns the next pseudo-random number (xorshift).
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}
