//! Tests idle connections, and connections above the limit.

use axum::routing::get;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::*;

/// How long the other side may take to close a connection.
const FAREWELL: Duration = Duration::from_millis(250);
/// A generous limit for busy machines.
const PATIENT: Duration = Duration::from_secs(30);

struct Served {
    address: std::net::SocketAddr,
    stop: CancellationToken,
    /// Releases the response of `/wait`.
    answer: Arc<Notify>,
    /// Notified when `/wait` is requested.
    asked: Arc<Notify>,
    serving: tokio::task::JoinHandle<Result<(), ServeError>>,
}

async fn served(most: usize) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (answer, asked) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (waiting, told) = (Arc::clone(&answer), Arc::clone(&asked));
    let wait = move || async move {
        told.notify_one();
        waiting.notified().await;
        "late"
    };
    let router = Router::new().route("/", get(|| async { "here" })).route("/wait", get(wait));
    let stop = CancellationToken::new();
    let shutdown = Shutdown { asked: stop.clone(), linger: Duration::ZERO };
    let port = Port { listener, tls: None, router, metrics: Arc::default() };
    let serving = tokio::spawn(serve_in(Places::new(most), port, shutdown));
    Served { address, stop, answer, asked, serving }
}

async fn ask(stream: &mut (impl AsyncWrite + Unpin), path: &str) {
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: h\r\n\r\n").as_bytes()).await.unwrap();
}

/// Reads the response up to `end`.
async fn answered(stream: &mut (impl AsyncRead + Unpin), end: &str) -> String {
    let mut text = Vec::new();
    while !text.ends_with(end.as_bytes()) {
        let read = timeout(PATIENT, stream.read_buf(&mut text)).await.unwrap().unwrap();
        assert!(read > 0, "closed after {:?}", String::from_utf8_lossy(&text));
    }
    String::from_utf8(text).unwrap()
}

async fn is_closed(stream: &mut TcpStream) -> bool {
    matches!(timeout(PATIENT, stream.read(&mut [0])).await, Ok(Ok(0) | Err(_)))
}

#[tokio::test]
async fn the_longest_idle_makes_room_and_a_request_under_way_does_not() {
    let served = served(3).await;
    let mut working = TcpStream::connect(served.address).await.unwrap();
    ask(&mut working, "/wait").await;
    served.asked.notified().await;
    let mut kept = TcpStream::connect(served.address).await.unwrap();
    ask(&mut kept, "/").await;
    answered(&mut kept, "here").await;
    // Each of many connections is accepted, although all places are taken.
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(TcpStream::connect(served.address).await.unwrap());
        let mut good = TcpStream::connect(served.address).await.unwrap();
        ask(&mut good, "/").await;
        answered(&mut good, "here").await;
    }
    assert!(is_closed(&mut kept).await);
    let mut closed = 0;
    for stream in silent.iter_mut().take(18) {
        closed += usize::from(is_closed(stream).await);
    }
    assert_eq!(closed, 18, "two places are not the one at work");
    served.answer.notify_one();
    answered(&mut working, "late").await;
    served.stop.cancel();
    timeout(PATIENT, served.serving).await.unwrap().unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_first_head_has_ten_seconds_and_the_next_one_longer() {
    let (places, router) = (Places::new(8), Router::new().route("/", get(|| async { "here" })));
    let connect = async || {
        let (client, server) = duplex(1024);
        let host = Webhook { router: router.clone(), counted: None, closing: CancellationToken::new() };
        let guest = Guest::new(places.enter().await, LIMITS);
        tokio::spawn(host.talk(server, Caller::default(), guest));
        client
    };
    let mut asking = connect().await;
    ask(&mut asking, "/").await;
    answered(&mut asking, "here").await;
    let began = Instant::now();
    assert_eq!(connect().await.read(&mut [0]).await.unwrap(), 0, "closed in words");
    let lived = began.elapsed();
    assert!(lived >= LIMITS.first_head && lived < LIMITS.first_head + FAREWELL * 2, "{lived:?}");
    // Half a head does not count as a request, whenever it began.
    let (mut half, began) = (connect().await, Instant::now());
    sleep(LIMITS.first_head - Duration::from_secs(1)).await;
    half.write_all(b"GET /").await.unwrap();
    assert!(matches!(half.read(&mut [0]).await, Ok(0) | Err(_)));
    assert!(began.elapsed() < LIMITS.first_head + FAREWELL * 2, "{:?}", began.elapsed());
    // Idle for twenty seconds, and still served.
    ask(&mut asking, "/").await;
    answered(&mut asking, "here").await;
}
