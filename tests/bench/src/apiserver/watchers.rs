//! Measures very many watches of objects that change continuously.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until, timeout};

use crate::Trouble;
use crate::load::config_maps;
use crate::report::{Bar, Report};
use crate::server::Server;

/// The number of watches on one connection, below the usual limit of servers.
const OF_CONNECTION: usize = 240;
const WATCHERS: usize = 5_000;
const EVENTS_A_SECOND: u32 = 100;
/// How long to wait until all watches have received the last event.
const PATIENCE: Duration = Duration::from_secs(120);

/// Opens watches of the ConfigMaps of a namespace; they end when the result is dropped.
pub(crate) async fn open(server: &Server, namespace: &str, count: usize) -> Result<Vec<Incoming>, Trouble> {
    let (_, list) =
        server.client().await?.send(http::Method::GET, &config_maps(namespace), Bytes::new()).await?;
    let version = list["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
    let path = format!("{}?watch=1&timeoutSeconds=600&resourceVersion={version}", config_maps(namespace));
    let mut watches = Vec::new();
    let mut connection = server.access.connect_many().await?;
    for number in 0..count {
        if number > 0 && number % OF_CONNECTION == 0 {
            connection = server.access.connect_many().await?;
        }
        let uri = format!("https://{}{path}", server.access.address);
        let request = Request::get(uri).header("accept", "application/json").body(Full::<Bytes>::default())?;
        let response = connection.send_request(request).await?;
        if !response.status().is_success() {
            return Err(format!("watch {number}: {}", response.status()).into());
        }
        watches.push(response.into_body());
    }
    Ok(watches)
}

pub(crate) async fn measure(
    server: &Server,
    length: Duration,
    who: &'static str,
    report: &mut Report,
) -> Result<(), Trouble> {
    let idle = server.resident()?;
    let watches = open(server, "default", WATCHERS).await?;
    report.add(who, ("held of a watch", "KiB"), Bar::None, (server.resident()? - idle) / 1024.0 / 5_000.0);
    let events = EVENTS_A_SECOND * u32::try_from(length.as_secs())?;
    let seen = Arc::new(AtomicUsize::default());
    let mut watching = JoinSet::new();
    for watch in watches {
        watching.spawn(told(watch, usize::try_from(events)?, Arc::clone(&seen)));
    }
    let mut client = server.client().await?;
    let (began, worked) = (Instant::now(), server.worked()?);
    let mut next = tokio::time::Instant::now();
    for number in 0..events {
        sleep_until(next).await;
        next += Duration::from_secs(1) / EVENTS_A_SECOND;
        let metadata = json!({"name": format!("c{number}")});
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"n": number.to_string()}});
        client.create(&config_maps("default"), &map).await?;
    }
    let written = began.elapsed();
    let all = WATCHERS * usize::try_from(events)?;
    let caught_up = async {
        while seen.load(Ordering::Relaxed) < all && !watching.is_empty() {
            tokio::select! { _ = watching.join_next() => {} () = sleep(Duration::from_millis(10)) => {} }
        }
    };
    let _ = timeout(PATIENCE, caught_up).await;
    let seen = seen.load(Ordering::Relaxed);
    let number = |count: usize| u32::try_from(count).map(f64::from);
    report.add(who, ("events lost of 5,000 watchers", ""), Bar::Most(0.0), number(all)? - number(seen)?);
    report.add(who, ("events written", "a second"), Bar::None, f64::from(events) / written.as_secs_f64());
    report.add(
        who,
        ("events delivered", "a second"),
        Bar::None,
        number(seen)? / began.elapsed().as_secs_f64(),
    );
    let cost = (server.worked()? - worked) * 1e6 / number(seen)?;
    report.add(who, ("an event delivered", "µs of CPU"), Bar::None, cost);
    report.add(
        who,
        ("last event seen by all after", "s"),
        Bar::None,
        (began.elapsed() - written).as_secs_f64(),
    );
    Ok(())
}

/// Counts the events that arrive in order: the objects' names are numbers.
async fn told(mut watch: Incoming, events: usize, seen: Arc<AtomicUsize>) {
    let (mut next, mut line) = (0, Vec::new());
    while next < events {
        let Some(Ok(frame)) = watch.frame().await else { return };
        let Some(mut data) = frame.data_ref().map(|data| &data[..]) else { continue };
        while let Some(end) = data.iter().position(|byte| *byte == b'\n') {
            let (head, rest) = data.split_at(end + 1);
            line.extend_from_slice(head);
            data = rest;
            if !contains(&line, format!("\"name\":\"c{next}\"").as_bytes()) {
                return;
            }
            line.clear();
            next += 1;
            seen.fetch_add(1, Ordering::Relaxed);
        }
        line.extend_from_slice(data);
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
