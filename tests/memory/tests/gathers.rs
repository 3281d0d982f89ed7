//! What a gathering and its upload may hold in memory, however large the cluster and however slow the service. One test, because the
//! memory of the whole process is counted.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where and stop")]

mod collection;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use admit::gather::archive::{Archive, ProcessFacts};
use admit::gather::collect::{Verdict, collect};
use admit::gather::recorder::Recorder;
use admit::gather::spool::Spool;
use admit::gather::tunnel::Proxies;
use admit::gather::upload::{ConcurrencyLimit, Endpoints, Ingress, Outlet, Pacing, TokenSource};
use admit::gather::{Context, GATHERERS};
use jiff::Timestamp;
use memory::growth;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::collection::{Collection, client};

const MIB: usize = 1 << 20;

#[test]
fn what_a_gathering_and_its_upload_hold() {
    gathering_of_many_pods();
    gathering_of_large_config_maps();
    uploads_to_a_silent_service();
}

/// Holds growth to so many MiB.
fn within(mebibytes: usize, grown: usize, what: &str) {
    let told = format!("{what}: {} KiB", grown >> 10);
    if std::env::var_os("ADMIT_MEMORY_TELLS").is_some() {
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "{told}");
    }
    assert!(grown < mebibytes * MIB, "{told}");
}

/// Gathers everything; by how much memory grew, and how many bytes of which records there are.
fn gathered(collection: Collection) -> (usize, usize, Vec<(String, Verdict)>) {
    let runtime = Runtime::new().unwrap();
    let context = Context {
        client: runtime.block_on(async { client(vec![collection]) }),
        namespace_prefix: "kube-".to_owned(),
        config_namespace: "kube-system".to_owned(),
        now: Timestamp::UNIX_EPOCH,
        interval: Duration::from_hours(2),
        remote: Arc::default(),
        agents: None,
        recorder: Recorder::new(Spool::new(tempfile::tempfile().unwrap(), None)),
    };
    let (grown, (written, rows)) = growth(|| {
        let bound = NonZeroUsize::new(8).unwrap();
        let rows = runtime.block_on(collect(GATHERERS.iter().collect(), &context, bound));
        let spool = context.recorder.close().unwrap();
        let archive =
            Archive::new(spool, &rows, ProcessFacts::default(), &context.remote, context.now).unwrap();
        let mut written = Written(0);
        archive.write(&mut written).unwrap();
        (written.0, rows)
    });
    (grown, written, rows.into_iter().map(|row| (row.id, row.verdict)).collect())
}

struct Written(usize);

impl std::io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn verdict<'r>(rows: &'r [(String, Verdict)], id: &str) -> &'r Verdict {
    &rows.iter().find(|(found, _)| found == id).unwrap().1
}

/// More pods than any list is cut at, of 6 KB each: 51 MB in all.
fn gathering_of_many_pods() {
    let filler = "x".repeat(6_000);
    let rest = format!(
        "\"spec\":{{\"filler\":\"{filler}\"}},\"status\":{{\"startTime\":\"2026-11-02T00:00:00Z\",\
         \"containerStatuses\":[{{\"image\":\"a:1\"}}]}}}}"
    );
    let pods = Collection { path: "/api/v1/pods", count: 8_500, rest: rest.into() };
    let (grown, _, rows) = gathered(pods);
    assert_eq!(*verdict(&rows, "clusterconfig/container_images"), Verdict::Gathered { records: 1 });
    within(8, grown, "8,500 pods");
}

/// 200 MB of ConfigMaps, of which an archive holds 24 MiB.
fn gathering_of_large_config_maps() {
    let rest = format!("\"data\":{{\"k\":\"{}\"}}}}", "x".repeat(1_000_000));
    let path = "/api/v1/namespaces/kube-system/configmaps";
    let (grown, written, rows) = gathered(Collection { path, count: 200, rest: rest.into() });
    let Verdict::GatheredWithErrors { records: 25, errors } = verdict(&rows, "clusterconfig/config_maps")
    else {
        unreachable(&rows)
    };
    assert_eq!(errors.last().map(String::as_str), Some("and 155 more"));
    assert!(written > 20_000, "{written} bytes of archive");
    within(32, grown, "200 large ConfigMaps");
}

#[expect(clippy::panic, reason = "a test that cannot go on should say where and stop")]
fn unreachable(rows: &[(String, Verdict)]) -> ! {
    panic!("{rows:?}")
}

/// A hundred archives of 8 MB wait for a service that takes a part of each and nothing more, until it has as many as are sent at a time.
fn uploads_to_a_silent_service() {
    const ARCHIVES: usize = 100;
    const AT_ONCE: usize = 8;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::File::create(path("archive")).unwrap().set_len(8_000_000).unwrap();
    std::fs::write(path("token"), "canary").unwrap();
    std::fs::write(path("ca.pem"), certificate()).unwrap();
    let runtime = Runtime::new().unwrap();
    let (grown, most) = growth(|| {
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}/upload", listener.local_addr().unwrap());
            let service = Arc::new(Service::default());
            let serving = tokio::spawn(serve(listener, Arc::clone(&service), AT_ONCE));
            let ingress = Ingress {
                transport: Outlet::new(Some(&path("ca.pem")), None, &["127.0.0.1".parse().unwrap()])
                    .unwrap()
                    .transport(Proxies::default()),
                endpoints: Endpoints::new(&url, None, "https://advisor.example").unwrap(),
                token: TokenSource::File(path("token")),
                cluster_id: "c-1".to_owned(),
                pacing: Pacing { upload_attempts: 1, ..Pacing::default() },
                turns: ConcurrencyLimit::default(),
            };
            let mut uploads = JoinSet::new();
            for _ in 0..ARCHIVES {
                let (ingress, archive) = (ingress.clone(), path("archive"));
                uploads.spawn(async move { ingress.upload(&archive, Timestamp::UNIX_EPOCH).await });
            }
            while let Some(uploaded) = uploads.join_next().await {
                assert_eq!(uploaded.unwrap().unwrap().code, 202);
            }
            serving.abort();
            *service.most.borrow()
        })
    });
    assert_eq!(most, AT_ONCE, "uploads at a time");
    within(32, grown, "a hundred uploads");
}

/// What a service counts.
#[derive(Default)]
struct Service {
    /// Uploads of which it has taken a part.
    begun: watch::Sender<usize>,
    open: watch::Sender<usize>,
    most: watch::Sender<usize>,
}

async fn serve(listener: TcpListener, service: Arc<Service>, patience: usize) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::spawn(take(stream, Arc::clone(&service), patience));
    }
}

async fn take(mut stream: TcpStream, service: Arc<Service>, patience: usize) {
    service.open.send_modify(|open| *open += 1);
    let open = *service.open.borrow();
    service.most.send_modify(|most| *most = open.max(*most));
    let (mut head, mut piece) = (Vec::new(), vec![0; 1 << 16]);
    let (body, length) = loop {
        let read = stream.read(&mut piece).await.unwrap();
        head.extend_from_slice(&piece[..read]);
        if let Some(found) = split(&head) {
            break found;
        }
    };
    let mut left = length - body;
    let pause = left - MIB;
    while left > 0 {
        if left <= pause && *service.begun.borrow() < patience {
            service.begun.send_modify(|begun| *begun += 1);
            service.begun.subscribe().wait_for(|begun| *begun >= patience).await.unwrap();
        }
        left -= stream.read(&mut piece).await.unwrap();
    }
    service.open.send_modify(|open| *open -= 1);
    let answer = b"HTTP/1.1 202 Accepted\r\nx-rh-insights-request-id: abc\r\ncontent-length: 0\r\n\r\n";
    stream.write_all(answer).await.unwrap();
}

/// How much of the body is there already, and how much there will be, once the head of the request is there.
fn split(head: &[u8]) -> Option<(usize, usize)> {
    let end = head.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&head[..end]).to_ascii_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    Some((head.len() - end, length.trim().parse().unwrap()))
}

fn certificate() -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    rcgen::CertificateParams::new(Vec::new()).unwrap().self_signed(&key).unwrap().pem()
}
