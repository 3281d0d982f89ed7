//! Measures how long the deletion of a namespace with its objects takes.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, StatusCode};
use tokio::time::sleep;

use crate::Trouble;
use crate::load::{config_map, config_maps, fill, namespace};
use crate::memory::pod;
use crate::report::{Bar, Report};
use crate::server::Server;

/// How long to wait for the first objects to be deleted; without controllers namespaces never end.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) async fn measure(server: &Server, who: &'static str, report: &mut Report) -> Result<(), Trouble> {
    let mut client = server.client().await?;
    for name in ["small", "large"] {
        client.create("/api/v1/namespaces", &namespace(name)).await?;
    }
    fill(server, &config_maps("small"), 1_000, |n| config_map(&format!("c{n}"))).await?;
    if let Some(took) = gone(server, "small").await? {
        report.add(who, ("a namespace of 1,000 gone", "s"), Bar::Most(0.5), took.as_secs_f64());
    }
    fill(server, "/api/v1/namespaces/large/pods", 8_000, |n| pod(n, 1)).await?;
    let worked = server.worked()?;
    if let Some(took) = gone(server, "large").await? {
        report.add(who, ("a namespace of 8,000 Pods gone", "s"), Bar::Most(5.0), took.as_secs_f64());
        report.add(who, ("8,000 Pods gone with it", "s of CPU"), Bar::None, server.worked()? - worked);
    }
    Ok(())
}

async fn gone(server: &Server, name: &str) -> Result<Option<Duration>, Trouble> {
    let mut client = server.client().await?;
    let path = format!("/api/v1/namespaces/{name}");
    let began = Instant::now();
    client.done(Method::DELETE, &path, Bytes::new()).await?;
    while began.elapsed() < PATIENCE {
        if client.length(Method::GET, &path, Bytes::new()).await?.0 == StatusCode::NOT_FOUND {
            return Ok(Some(began.elapsed()));
        }
        sleep(Duration::from_millis(5)).await;
    }
    Ok(None)
}
