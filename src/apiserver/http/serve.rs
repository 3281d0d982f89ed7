//! Serves requests in process (as a service) and over HTTPS. A single connection is handled by `connection`.

use std::future::Future;
use std::sync::Arc;

use admit_serving::{Places, Port, ServeError};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::connection::{Face, HTTP2, LIMITS};
use super::tls::Tls;
use crate::server::{Server, places};

impl Server {
    /// Returns the server as a service, to be called in process or behind any transport. Requests act as the
    /// [`Identity`](crate::Identity) in their extensions, as that of their bearer token, and without either as an administrator.
    pub fn router(&self) -> axum::Router {
        super::router(self.clone())
    }

    /// Serves HTTPS until `shutdown` completes, which also ends all watches of the server. `tls` says whether client certificates
    /// are requested and verified; a client without one is anonymous.
    ///
    /// # Errors
    /// If the listener fails, or the system cannot start a thread.
    ///
    /// ```
    /// use admit_apiserver::{Server, serve_router};
    /// use rustls::pki_types::PrivateKeyDer;
    /// use tokio::net::TcpListener;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Server::builder().build().await?;
    /// let rcgen::CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    /// let key = PrivateKeyDer::try_from(signing_key.serialize_der())?;
    /// let provider = rustls::crypto::ring::default_provider();
    /// let tls = rustls::ServerConfig::builder_with_provider(provider.into())
    ///     .with_safe_default_protocol_versions()?
    ///     .with_no_client_auth()
    ///     .with_single_cert(vec![cert.der().clone()], key)?;
    ///
    /// // The server itself, then its router with a path of one's own beside it; both end at once.
    /// server.serve(TcpListener::bind("127.0.0.1:0").await?, tls.clone(), async {}).await?;
    /// let router = server.router().route("/mine", axum::routing::get(|| async { "mine" }));
    /// serve_router(router, TcpListener::bind("127.0.0.1:0").await?, tls, async {}).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn serve(
        &self,
        listener: TcpListener,
        tls: impl Into<Tls>,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), ServeError> {
        let places = Arc::clone(self.connections());
        serve_in(places, self.router(), listener, tls.into(), shutdown).await
    }
}

/// Serves a server's router, with any layers around it, over TLS: accepts connections until `shutdown` completes, then
/// completes open requests. [`Server::serve`] has an example.
///
/// # Errors
/// If the listener fails, or the system cannot start a thread: open connections are closed then.
pub async fn serve(
    router: axum::Router,
    listener: TcpListener,
    tls: impl Into<Tls>,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    serve_in(places(), router, listener, tls.into(), shutdown).await
}

/// Like [`serve`], with connections counted in `places`.
async fn serve_in(
    places: Arc<Places>,
    router: axum::Router,
    listener: TcpListener,
    Tls { config: mut tls, clients }: Tls,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    tls.alpn_protocols = [HTTP2, b"http/1.1"].map(<[u8]>::to_vec).to_vec();
    let (_certificate, tls) = watch::channel(Arc::new(tls));
    let port = Port { listener, tls: Some(tls), places, limits: LIMITS };
    admit_serving::serve(port, Face { router, clients }, shutdown).await
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::Duration;

    use admit_serving::Guest;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;
    use tokio::task::JoinHandle;
    use tokio::time::timeout;

    use super::*;
    use crate::identity::Identity;

    #[derive(Debug)]
    struct NoCertificate;

    impl rustls::server::ResolvesServerCert for NoCertificate {
        fn resolve(&self, _: rustls::server::ClientHello<'_>) -> Option<Arc<rustls::sign::CertifiedKey>> {
            None
        }
    }

    /// Starts a server and returns its address.
    async fn served(places: &Arc<Places>) -> SocketAddr {
        served_until(places, std::future::pending()).await.0
    }

    async fn served_until(
        places: &Arc<Places>,
        end: impl Future<Output = ()> + Send + 'static,
    ) -> (SocketAddr, JoinHandle<Result<(), ServeError>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(NoCertificate));
        (address, tokio::spawn(serve_in(Arc::clone(places), axum::Router::new(), listener, tls.into(), end)))
    }

    /// Sends invalid TLS; returns the stream and an empty buffer, into which a caller reads the alert.
    async fn asked(address: SocketAddr) -> (TcpStream, Vec<u8>) {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"no handshake").await.unwrap();
        (stream, Vec::new())
    }

    const PATIENCE: Duration = Duration::from_secs(20);
    const ALERT: Option<&u8> = Some(&21);

    #[tokio::test]
    async fn a_connection_beyond_the_limit_waits_until_another_ends() {
        let places = Arc::new(Places::new(1));
        let working = Guest::new(places.enter().await, LIMITS);
        let request = working.activity().begin();
        let (mut waiting, mut answer) = asked(served(&places).await).await;
        let early = timeout(Duration::from_millis(100), waiting.read_to_end(&mut answer)).await;
        assert!(early.is_err(), "nobody looks at it while the other is at work");
        drop((request, working));
        let _ = timeout(PATIENCE, waiting.read_to_end(&mut answer)).await.unwrap();
        assert_eq!(answer.first(), ALERT, "it is looked at now");
    }

    #[tokio::test]
    async fn the_end_does_not_wait_for_handshakes() {
        let places = Arc::new(Places::new(2));
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let (address, serving) = served_until(&places, async { drop(ended.await) }).await;
        let _silent = TcpStream::connect(address).await.unwrap();
        while places.taken() == 0 {
            tokio::task::yield_now().await;
        }
        end.send(()).unwrap();
        timeout(LIMITS.drain - Duration::from_secs(1), serving).await.unwrap().unwrap().unwrap();
    }

    #[tokio::test]
    async fn watches_end_with_the_port() {
        let server = Server::builder().token("t", Identity::admin()).build().await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let port = Port { listener, tls: None, places: places(), limits: LIMITS };
        let face = Face { router: server.router(), clients: None };
        let serving = tokio::spawn(admit_serving::serve(port, face, async { drop(ended.await) }));
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request =
            b"GET /api/v1/namespaces?watch=1 HTTP/1.1\r\nhost: h\r\nauthorization: Bearer t\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut text = Vec::new();
        while !String::from_utf8_lossy(&text).contains("\"ADDED\"") {
            assert!(stream.read_buf(&mut text).await.unwrap() > 0, "{}", String::from_utf8_lossy(&text));
        }
        end.send(()).unwrap();
        timeout(LIMITS.drain - Duration::from_secs(1), serving).await.unwrap().unwrap().unwrap();
        stream.read_to_end(&mut text).await.unwrap();
        assert!(text.ends_with(b"0\r\n\r\n"), "it ended in words");
    }

    #[tokio::test]
    async fn a_connection_beyond_the_limit_takes_the_place_of_one_that_is_silent() {
        let places = Arc::new(Places::new(1));
        let address = served(&places).await;
        let mut silent = TcpStream::connect(address).await.unwrap();
        while places.taken() == 0 {
            tokio::task::yield_now().await;
        }
        let (mut next, mut answer) = asked(address).await;
        let _ = timeout(PATIENCE / 4, next.read_to_end(&mut answer)).await.unwrap();
        assert_eq!(answer.first(), ALERT, "it is looked at though nobody left by himself");
        assert!(
            matches!(timeout(PATIENCE, silent.read(&mut [0])).await, Ok(Ok(0) | Err(_))),
            "it was closed"
        );
    }
}
