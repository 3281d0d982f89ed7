//! Tells `kube-apiserver` where `etcd` keeps the objects, and when `etcd` has ended: two HTTP resources on the loopback
//! interface.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use admit_apimachinery::go::url;
use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use crate::cli::process::Fault;

/// The path that returns where the objects are.
pub(super) const STORE: &str = "/admit/v1/store";
/// The path whose response ends with the process.
pub(super) const LIFE: &str = "/admit/v1/life";

/// How long to wait for an etcd that is started at the same time, as upstream does.
const PATIENCE: Duration = Duration::from_secs(20);
const AGAIN: Duration = Duration::from_millis(50);

/// Where the objects are.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Handover {
    /// The file of the store.
    pub(super) path: PathBuf,
    /// Whether changes are not forced to the disk.
    pub(super) unsynced: bool,
}

/// Parses a URL of etcd, which must be on the loopback interface: the answer names files, and is for this machine only.
///
/// # Errors
/// When the URL leads elsewhere.
pub(super) fn local(flag: &str, text: &str) -> Result<SocketAddr, Fault> {
    let wrong = |why: &str| Fault::usage(format!("--{flag}: `{text}` {why}"));
    let url = url::parse(text).map_err(|error| Fault::usage(format!("--{flag}: {error}")))?;
    if url.scheme != "http" {
        return Err(wrong(
            "is not spoken here: this program's etcd is reached by http:// on this machine alone",
        ));
    }
    let port = url.port().parse().map_err(|_| wrong("has no port"))?;
    let host = url.hostname();
    let address = match host.parse::<IpAddr>() {
        // Unspecified addresses include the loopback address, and clients must be local.
        Ok(address) if address.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        Ok(address) if address.is_loopback() => address,
        Err(_) if host == "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
        _ => return Err(wrong("is not of this machine alone: use 127.0.0.1")),
    };
    Ok(SocketAddr::new(address, port))
}

/// Asks the etcd at `address`, waiting until it has started.
///
/// # Errors
/// When it does not start in time, or is another program.
pub(super) async fn ask(address: SocketAddr) -> Result<Handover, Fault> {
    let until = Instant::now() + PATIENCE;
    loop {
        match get(address, STORE).await {
            Ok(answer) if answer.status() == StatusCode::OK => {
                let body = answer.into_body().collect().await.map_err(Fault::internal)?.to_bytes();
                return serde_json::from_slice(&body).map_err(|error| another(address, &error.to_string()));
            }
            Ok(answer) => return Err(another(address, &format!("it answered {}", answer.status()))),
            Err(error) if Instant::now() >= until => {
                return Err(Fault::usage(format!(
                    "--etcd-servers: no etcd answers at {address}: {error}; start the `etcd` of the folder that \
                     `admit envtest` prints"
                )));
            }
            Err(_) => sleep(AGAIN).await,
        }
    }
}

fn another(address: SocketAddr, why: &str) -> Fault {
    Fault::usage(format!(
        "--etcd-servers: what answers at {address} is not this program's etcd ({why}); start the `etcd` of the folder \
         that `admit envtest` prints"
    ))
}

/// Returns when the etcd at `address` has ended.
pub(super) async fn ended(address: SocketAddr) {
    if let Ok(answer) = get(address, LIFE).await {
        // The body ends with the process.
        let _ = answer.into_body().collect().await;
    }
}

/// Why a request failed.
#[derive(Debug, Error)]
enum GetError {
    #[error(transparent)]
    Connect(#[from] std::io::Error),
    #[error(transparent)]
    Request(#[from] http::Error),
    #[error(transparent)]
    Exchange(#[from] hyper::Error),
}

async fn get(address: SocketAddr, path: &str) -> Result<http::Response<Incoming>, GetError> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let request = Request::get(path).header(header::HOST, address.to_string()).body(Empty::<Bytes>::new());
    Ok(sender.send_request(request?).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etcd_is_of_this_machine() {
        for (text, address) in [
            ("http://127.0.0.1:2379", Some("127.0.0.1:2379")),
            ("http://0.0.0.0:2379", Some("127.0.0.1:2379")),
            ("http://localhost:2379/", Some("127.0.0.1:2379")),
            ("http://[::1]:2379", Some("[::1]:2379")),
            ("https://127.0.0.1:2379", None),
            ("http://127.0.0.1", None),
            ("http://10.0.0.1:2379", None),
            ("127.0.0.1:2379", None),
        ] {
            let found = local("etcd-servers", text).ok().map(|address| address.to_string());
            assert_eq!(found.as_deref(), address, "{text}");
        }
    }
}
