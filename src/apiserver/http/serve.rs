//! Serving over TLS: as many connections as there is room for, and a graceful end. What one connection may do is the
//! business of `connection`.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::connection::{Connection, HTTP2};

/// Connections at one time; further ones wait in the kernel's queue. A client needs one or two, since many requests and
/// watches share one; and a process is commonly allowed 1,024 descriptors, of which stores and webhooks need some.
pub(crate) const MAX_CONNECTIONS: usize = 512;
/// A pause when the system has no descriptor or memory left for another connection.
const EXHAUSTED: Duration = Duration::from_millis(50);
/// Connections that are still busy after this are cut.
const DRAIN: Duration = Duration::from_secs(5);

/// Serves a server's router, with whatever layers were put around it, over TLS: accepts until `shutdown` is ready, then
/// lets requests end.
///
/// # Errors
/// When the listener breaks: connections that are open are cut then.
pub async fn serve(
    router: axum::Router,
    listener: TcpListener,
    tls: rustls::ServerConfig,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    serve_within(router, listener, tls, shutdown, room).await
}

/// The same, of as many connections at a time as `room` has permits.
pub(crate) async fn serve_within(
    router: axum::Router,
    listener: TcpListener,
    mut tls: rustls::ServerConfig,
    shutdown: impl Future<Output = ()> + Send,
    room: Arc<Semaphore>,
) -> io::Result<()> {
    tls.alpn_protocols = [HTTP2, b"http/1.1"].map(<[u8]>::to_vec).to_vec();
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let (stop, stopping) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut was_full = false;
    tokio::pin!(shutdown);
    loop {
        let full = room.available_permits() == 0;
        if full && !was_full {
            tracing::warn!("as many connections are open as are allowed: others wait");
        }
        was_full = full;
        let accepted = async {
            let permit = Arc::clone(&room).acquire_owned().await;
            (permit, listener.accept().await)
        };
        tokio::select! {
            () = &mut shutdown => break,
            (permit, accepted) = accepted => match accepted {
                Ok((stream, _)) => {
                    let connection = Connection::new(router.clone(), acceptor.clone(), stopping.clone());
                    connections.spawn(async move {
                        connection.run(stream).await;
                        drop(permit);
                    });
                }
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) if is_exhaustion(&error) => {
                    tracing::warn!(%error, "the system has no room for another connection");
                    tokio::time::sleep(EXHAUSTED).await;
                }
                Err(error) => return Err(error),
            },
        }
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    let _ = stop.send(true);
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN, drained).await.is_err() {
        tracing::info!("connections were cut at shutdown");
    }
    Ok(())
}

/// Errors of `accept` that say nothing about the listener.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    )
}

/// ENFILE, EMFILE, ENOMEM and ENOBUFS: connections that end give back what is missing.
fn is_exhaustion(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(12 | 23 | 24 | 105))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;

    #[derive(Debug)]
    struct NoCertificate;

    impl rustls::server::ResolvesServerCert for NoCertificate {
        fn resolve(&self, _: rustls::server::ClientHello<'_>) -> Option<Arc<rustls::sign::CertifiedKey>> {
            None
        }
    }

    #[tokio::test]
    async fn a_connection_beyond_the_limit_waits_until_another_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(NoCertificate));
        let room = Arc::new(Semaphore::new(1));
        let serving =
            serve_within(axum::Router::new(), listener, tls, std::future::pending(), Arc::clone(&room));
        tokio::spawn(serving);

        let silent = TcpStream::connect(address).await.unwrap();
        while room.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let mut waiting = TcpStream::connect(address).await.unwrap();
        waiting.write_all(b"no handshake").await.unwrap();
        let mut answer = Vec::new();
        let early = tokio::time::timeout(Duration::from_millis(100), waiting.read_to_end(&mut answer)).await;
        assert!(early.is_err(), "nobody looks at it while the other is there");
        drop(silent);
        let _ =
            tokio::time::timeout(Duration::from_secs(20), waiting.read_to_end(&mut answer)).await.unwrap();
        assert_eq!(answer.first(), Some(&21), "a TLS alert: it is looked at now");
    }
}
