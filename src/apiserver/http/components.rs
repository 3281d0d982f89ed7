//! Answers requests for the deprecated ComponentStatuses, which are not stored: it probes the parts of a control plane at
//! their default local ports.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::response::Response;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::accept::Accepted;
use super::{Failure, presentation};
use crate::call::{Call, ListOptions, Query, check_export};
use crate::object;
use crate::registry::selector::Selector;
use crate::resources::ResourceInfo;
use crate::status::Refusal;

/// The parts of a control plane, and their health ports; the store runs in this process and has none.
const COMPONENTS: [(&str, Option<u16>); 3] =
    [("scheduler", Some(10259)), ("controller-manager", Some(10257)), ("etcd-0", None)];
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) async fn answer(
    call: &Call,
    name: Option<&str>,
    query: &Query,
    accepted: &Accepted,
) -> Result<Response, Failure> {
    accepted.check()?;
    let options = match name {
        Some(_) => {
            check_export(query)?;
            ListOptions::default()
        }
        None => ListOptions::parse(query, false)?,
    };
    let document = match name {
        Some(name) => match COMPONENTS.into_iter().find(|(known, _)| *known == name) {
            Some((name, port)) => status(name, port).await,
            None => {
                // Upstream's message has the kind here, and the resource elsewhere.
                let mut info = ResourceInfo::clone(&call.info);
                info.plural.clone_from(&info.singular);
                return Err(Refusal::not_found(&info, name).into());
            }
        },
        None => {
            let mut items =
                futures::future::join_all(COMPONENTS.map(|(name, port)| status(name, port))).await;
            let selector = Selector::parse(&call.info, &options.label_selector, &options.field_selector)?;
            items.retain(|item| selector.matches(item));
            for item in &mut items {
                object::set_field(item, "kind", None);
                object::set_field(item, "apiVersion", None);
            }
            json!({"kind": "ComponentStatusList", "apiVersion": "v1", "metadata": {}, "items": items})
        }
    };
    Ok(presentation::shown_as(call, query, accepted, (200, &document))?)
}

async fn status(name: &str, port: Option<u16>) -> Value {
    let (status, message) = match port {
        Some(port) => match unreachable(port).await {
            Some(why) => ("False", format!("Get \"https://127.0.0.1:{port}/healthz\": {why}")),
            None => ("True", "ok".to_owned()),
        },
        None => ("True", "ok".to_owned()),
    };
    json!({
        "kind": "ComponentStatus", "apiVersion": "v1", "metadata": {"name": name},
        "conditions": [{"type": "Healthy", "status": status, "message": message}]
    })
}

/// Returns why the port cannot be reached, in Go's words; None if it can.
async fn unreachable(port: u16) -> Option<String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let why = match timeout(PATIENCE, TcpStream::connect(address)).await {
        Ok(Ok(_)) => return None,
        Ok(Err(error)) if error.kind() == ErrorKind::ConnectionRefused => {
            "connect: connection refused".to_owned()
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => "i/o timeout".to_owned(),
    };
    Some(format!("dial tcp {address}: {why}"))
}
