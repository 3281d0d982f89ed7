//! Measures the requests per second of sixteen clients, each over a kept connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::Trouble;
use crate::client::Client;
use crate::report::{Bar, Report};
use crate::server::Server;

const CLIENTS: usize = 16;
/// The number of objects in listed collections.
pub(crate) const LISTED: usize = 500;

pub(crate) fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

pub(crate) fn config_maps(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

/// Returns a ConfigMap of a kilobyte.
pub(crate) fn config_map(name: &str) -> Value {
    let data: serde_json::Map<String, Value> =
        (0..8).map(|n| (format!("key-{n}"), format!("{n}").repeat(112).into())).collect();
    let metadata = json!({"name": name, "labels": {"app": "bench"}});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
}

pub(crate) async fn measure(
    server: &Server,
    length: Duration,
    who: &'static str,
    report: &mut Report,
) -> Result<(), Trouble> {
    let mut client = server.client().await?;
    for name in ["created", "listed"] {
        client.create("/api/v1/namespaces", &namespace(name)).await?;
    }
    for number in 0..LISTED {
        client.create(&config_maps("listed"), &config_map(&format!("c{number}"))).await?;
    }
    let lists = |gzip: bool| {
        move |mut client: Client, _: Arc<AtomicUsize>| {
            client.gzip = gzip;
            (client, Method::GET, config_maps("listed"), Bytes::new())
        }
    };
    let creates = |client: Client, counter: Arc<AtomicUsize>| {
        let number = counter.fetch_add(1, Ordering::Relaxed);
        let body = config_map(&format!("c{number}")).to_string();
        (client, Method::POST, config_maps("created"), body.into())
    };
    let gets = |client: Client, counter: Arc<AtomicUsize>| {
        let number = counter.fetch_add(7, Ordering::Relaxed) % LISTED;
        (client, Method::GET, format!("{}/c{number}", config_maps("listed")), Bytes::new())
    };
    let mut add = |name: [&'static str; 2], bar: Bar, (rate, cost): (f64, f64)| {
        report.add(who, (name[0], "a second"), bar, rate);
        report.add(who, (name[1], "µs of CPU"), Bar::None, cost);
    };
    add(["gets", "a get"], Bar::Times(6.0), rated(server, length, gets).await?);
    add(["lists of 500", "a list"], Bar::Times(3.0), rated(server, length, lists(false)).await?);
    let compressed = rated(server, length, lists(true)).await?;
    add(["compressed lists of 500", "a compressed list"], Bar::None, compressed);
    add(["creates", "a create"], Bar::Times(5.0), rated(server, length, creates).await?);
    Ok(())
}

type Next = (Client, Method, String, Bytes);

/// Measures the requests per second, and the server's CPU microseconds per request.
async fn rated(
    server: &Server,
    length: Duration,
    next: impl Fn(Client, Arc<AtomicUsize>) -> Next + Send + Clone + 'static,
) -> Result<(f64, f64), Trouble> {
    let mut clients = JoinSet::new();
    let counter = Arc::new(AtomicUsize::default());
    let mut connected = Vec::new();
    for _ in 0..CLIENTS {
        connected.push(server.client().await?);
    }
    let (began, worked) = (Instant::now(), server.worked()?);
    for mut client in connected {
        let (next, counter) = (next.clone(), Arc::clone(&counter));
        clients.spawn(async move {
            let mut done = 0_u32;
            while began.elapsed() < length {
                let (given, method, path, body) = next(client, Arc::clone(&counter));
                client = given;
                client.done(method, &path, body).await?;
                done += 1;
            }
            Ok::<_, Trouble>(done)
        });
    }
    let mut all = 0;
    while let Some(done) = clients.join_next().await {
        all += done??;
    }
    let cost = (server.worked()? - worked) * 1e6 / f64::from(all);
    Ok((f64::from(all) / began.elapsed().as_secs_f64(), cost))
}

/// Creates objects with several clients.
pub(crate) async fn fill(
    server: &Server,
    path: &str,
    count: usize,
    object: impl Fn(usize) -> Value + Send + Copy + 'static,
) -> Result<(), Trouble> {
    let mut clients = JoinSet::new();
    for first in 0..CLIENTS {
        let (mut client, path) = (server.client().await?, path.to_owned());
        clients.spawn(async move {
            for number in (first..count).step_by(CLIENTS) {
                client.create(&path, &object(number)).await?;
            }
            Ok::<_, Trouble>(())
        });
    }
    while let Some(done) = clients.join_next().await {
        done??;
    }
    Ok(())
}
