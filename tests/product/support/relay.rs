//! What stands between a client and a server in a test: a relay that cuts connections after so many bytes, and proxies that
//! connect, refuse, or say nothing.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Hands bytes on, and cuts each connection once so many bytes have gone by in it.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    /// Connections taken.
    pub(crate) taken: Arc<AtomicU64>,
    /// Bytes that clients have sent.
    pub(crate) sent: Arc<AtomicU64>,
    /// Bytes that the server has sent.
    pub(crate) answered: Arc<AtomicU64>,
}

/// Whose bytes are counted until a cut.
#[derive(Clone, Copy, PartialEq)]
enum Counted {
    Client,
    Server,
}

impl Relay {
    /// Leads to `server`. `cuts` are the bytes of the client after which one connection after the other is cut; those behind the
    /// last are not.
    pub(crate) async fn start(server: SocketAddr, cuts: Vec<u64>) -> Self {
        Self::cutting(server, Counted::Client, cuts).await
    }

    /// The same by the bytes of the server.
    pub(crate) async fn cutting_answers(server: SocketAddr, cuts: Vec<u64>) -> Self {
        Self::cutting(server, Counted::Server, cuts).await
    }

    async fn cutting(server: SocketAddr, counted: Counted, cuts: Vec<u64>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let [taken, sent, answered] = [(); 3].map(|()| Arc::new(AtomicU64::new(0)));
        let relay = Self { address, taken: taken.clone(), sent: sent.clone(), answered: answered.clone() };
        tokio::spawn(async move {
            let mut cuts = cuts.into_iter();
            while let Ok((client, _)) = listener.accept().await {
                taken.fetch_add(1, Ordering::SeqCst);
                let cut = cuts.next().unwrap_or(u64::MAX);
                let [up, down] = [Counted::Client, Counted::Server]
                    .map(|side| if side == counted { cut } else { u64::MAX });
                let server = TcpStream::connect(server).await.unwrap();
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                let (sent, answered) = (sent.clone(), answered.clone());
                tokio::spawn(async move {
                    // Whichever ends first takes the other along.
                    tokio::select! {
                        () = hand_on(from_client, to_server, up, sent) => {}
                        () = hand_on(from_server, to_client, down, answered) => {}
                    }
                });
            }
        });
        relay
    }
}

async fn hand_on(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, cut: u64, count: Arc<AtomicU64>) {
    let mut left = cut;
    let mut buffer = vec![0; 64 * 1024];
    while left > 0 {
        let read = from.read(&mut buffer).await.unwrap_or(0);
        if read == 0 {
            return;
        }
        let passed = (read as u64).min(left);
        left -= passed;
        count.fetch_add(passed, Ordering::SeqCst);
        if to.write_all(&buffer[..usize::try_from(passed).unwrap()]).await.is_err() {
            return;
        }
    }
}

/// What a proxy does with a request.
#[derive(Clone)]
pub(crate) enum Manner {
    /// Connects, whatever it is asked for, to this server.
    Connect(SocketAddr),
    /// The same for who logs in as this user with this password.
    Login(SocketAddr, &'static str, &'static str),
    /// Connects to a server that waits for the client's first word, for who logs in so where a login is wanted.
    Quiet(SocketAddr, Option<(&'static str, &'static str)>),
    /// Answers so.
    Answer(&'static str),
    Silent,
}

/// A proxy, in the clear or under TLS.
pub(crate) struct FakeProxy {
    pub(crate) address: SocketAddr,
    /// The authority of its certificate, PEM.
    pub(crate) ca: String,
    /// First lines of the requests.
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
}

impl FakeProxy {
    pub(crate) async fn start(manner: Manner, under_tls: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (ca, acceptor) = tls();
        let proxy = Self { address, ca, asked: asked.clone() };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (manner, asked) = (manner.clone(), asked.clone());
                let acceptor = under_tls.then(|| acceptor.clone());
                tokio::spawn(async move { take(stream, acceptor, manner, asked).await });
            }
        });
        proxy
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn take(
    stream: TcpStream,
    acceptor: Option<TlsAcceptor>,
    manner: Manner,
    asked: Arc<Mutex<Vec<String>>>,
) {
    match acceptor {
        None => answer(stream, manner, asked).await,
        Some(acceptor) => {
            if let Ok(stream) = acceptor.accept(stream).await {
                answer(stream, manner, asked).await;
            }
        }
    }
}

async fn answer(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    manner: Manner,
    asked: Arc<Mutex<Vec<String>>>,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else { return };
        head.push(byte);
    }
    let head = String::from_utf8(head).unwrap();
    asked.lock().unwrap().push(head.lines().next().unwrap().to_owned());
    let logged_in = |user: &str, password: &str| {
        let login =
            format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode(format!("{user}:{password}")));
        head.contains(&login)
    };
    let greets = !matches!(manner, Manner::Quiet(..));
    let server = match manner {
        Manner::Connect(server) | Manner::Quiet(server, None) => Some(server),
        Manner::Login(server, user, password) | Manner::Quiet(server, Some((user, password))) => {
            logged_in(user, password).then_some(server)
        }
        Manner::Answer(text) => {
            let _ = stream.write_all(text.as_bytes()).await;
            return;
        }
        Manner::Silent => return std::future::pending().await,
    };
    let Some(server) = server else {
        let refusal = "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n";
        let _ = stream.write_all(refusal.as_bytes()).await;
        return;
    };
    let mut server = TcpStream::connect(server).await.unwrap();
    // The greeting of the server comes with the answer, in one piece.
    let mut greeting = vec![0; 1024];
    let read = if greets { server.read(&mut greeting).await.unwrap() } else { 0 };
    let mut first = b"HTTP/1.1 200 Connection established\r\nVia: a test\r\n\r\n".to_vec();
    first.extend_from_slice(&greeting[..read]);
    if stream.write_all(&first).await.is_ok() {
        let _ = copy_bidirectional(&mut stream, &mut server).await;
    }
}

/// An authority, PEM, and a server of 127.0.0.1 by it.
fn tls() -> (String, TlsAcceptor) {
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let pem = ca.self_signed(&ca_key).unwrap().pem();
    let issuer = Issuer::new(ca, ca_key);
    let key = KeyPair::generate().unwrap();
    let leaf =
        CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
        .unwrap();
    (pem, TlsAcceptor::from(Arc::new(config)))
}
