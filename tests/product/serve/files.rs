//! Row 43: what is no file, stands where policies and certificates are read, and holds up neither reloads nor the end.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tokio::task::JoinSet;

use super::server::{Place, Serving, policy, review};
use crate::support::https::Client;
use crate::support::reliability::Row;

/// What comes of a vandalised folder.
#[derive(Clone, Copy, PartialEq)]
enum Outcome {
    /// It does not load.
    Refused,
    /// It is what it was before.
    Harmless,
    /// A file is perhaps being written.
    Waits,
}
use Outcome::{Harmless, Refused, Waits};

type Vandal = fn(&Path);

/// Done to the folder of policies, in which `a.yaml` has two and `b.yaml` has one.
const CASES: &[(&str, Outcome, Vandal)] = &[
    ("a named pipe", Refused, |at| pipe(&at.join("z.yaml"))),
    ("a named pipe in place of policies", Refused, |at| over(&at.join("a.yaml"), pipe)),
    ("a named pipe in a folder", Refused, |at| {
        fs::create_dir(at.join("sub")).unwrap();
        pipe(&at.join("sub/z.yaml"));
    }),
    ("a link to a named pipe", Refused, |at| {
        pipe(&at.join("z"));
        symlink("z", at.join("z.yaml")).unwrap();
    }),
    ("a named pipe in place of the folder", Refused, |at| over(at, pipe)),
    ("a hidden pipe, and one of another name", Harmless, |at| {
        pipe(&at.join(".z.yaml"));
        pipe(&at.join("z.txt"));
    }),
    ("a socket", Refused, |at| drop(UnixListener::bind(at.join("z.yaml")).unwrap())),
    ("a socket in place of policies", Refused, |at| {
        over(&at.join("b.yaml"), |path| drop(UnixListener::bind(path).unwrap()));
    }),
    ("zeros without end", Refused, |at| symlink("/dev/zero", at.join("z.yaml")).unwrap()),
    ("noise without end", Refused, |at| symlink("/dev/random", at.join("z.yaml")).unwrap()),
    ("nothing", Refused, |at| symlink("/dev/null", at.join("z.yaml")).unwrap()),
    ("a terminal", Refused, |at| symlink("/dev/tty", at.join("z.yaml")).unwrap()),
    ("an environment", Refused, |at| symlink("/proc/self/environ", at.join("z.yaml")).unwrap()),
    ("a log of the kernel", Refused, |at| symlink("/proc/kmsg", at.join("z.yaml")).unwrap()),
    ("a folder of the kernel", Refused, |at| {
        fs::create_dir(at.join("sub")).unwrap();
        symlink("/proc/self/status", at.join("sub/z.yaml")).unwrap();
    }),
    ("a link to itself", Refused, |at| symlink("z.yaml", at.join("z.yaml")).unwrap()),
    ("two links to one another", Refused, |at| {
        symlink("y.yaml", at.join("z.yaml")).unwrap();
        symlink("z.yaml", at.join("y.yaml")).unwrap();
    }),
    ("a link to nothing", Refused, |at| symlink("nowhere", at.join("z.yaml")).unwrap()),
    ("a link to the folder above", Harmless, |at| symlink("..", at.join("sub")).unwrap()),
    ("a link to policies that are there", Refused, |at| symlink("a.yaml", at.join("z.yaml")).unwrap()),
    ("folders that lead to one another", Refused, |at| {
        for one in 0..12 {
            fs::create_dir(at.join(format!("{one}"))).unwrap();
            for other in (0..12).filter(|other| *other != one) {
                symlink(format!("../{other}"), at.join(format!("{one}/{other}"))).unwrap();
            }
        }
    }),
    ("folders that are too deep", Refused, |at| {
        let deep = (0..40).fold(at.to_owned(), |path, _| path.join("d"));
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("z.yaml"), policy("z", "true")).unwrap();
    }),
    ("a folder with a file's name", Harmless, |at| fs::create_dir(at.join("z.yaml")).unwrap()),
    ("no folder", Refused, |at| over(at, |_| {})),
    ("an empty folder", Refused, |at| over(at, |path| fs::create_dir(path).unwrap())),
    ("a file of a terabyte", Refused, |at| {
        File::create(at.join("z.yaml")).unwrap().set_len(1 << 40).unwrap()
    }),
    ("what nobody may read", Refused, |at| {
        fs::write(at.join("z.yaml"), "a: [").unwrap();
        fs::set_permissions(at.join("z.yaml"), fs::Permissions::from_mode(0o000)).unwrap();
    }),
    ("what is no text", Refused, |at| fs::write(at.join("z.yaml"), [0xFF, 0xFE, 0, 1]).unwrap()),
    ("a name that is no text", Refused, |at| {
        fs::write(at.join(OsStr::from_bytes(b"z\xFF.yaml")), "a: [").unwrap();
    }),
    ("a file that grows", Refused, |at| {
        let mut file = File::create(at.join("z.yaml")).unwrap();
        for number in 0..200 {
            writeln!(file, "a{number}: [").unwrap();
        }
    }),
    ("torn in a document", Refused, |at| {
        cut(&at.join("a.yaml"), |text| text.find("[configmaps").unwrap() + 4)
    }),
    ("torn between documents", Waits, |at| cut(&at.join("a.yaml"), half)),
];

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// What was there is gone: a file at the moment when something else is there, and a folder before.
fn over(path: &Path, then: impl Fn(&Path)) {
    if path.is_dir() {
        fs::rename(path, path.with_extension("gone")).unwrap();
        return then(path);
    }
    let beside = path.with_file_name(".vandal");
    then(&beside);
    fs::rename(beside, path).unwrap();
}

/// Cuts it off in place, as a writer that has only begun to write.
fn cut(path: &Path, at: impl Fn(&str) -> usize) {
    let text = fs::read_to_string(path).unwrap();
    let to = u64::try_from(at(&text)).unwrap();
    File::options().write(true).open(path).unwrap().set_len(to).unwrap();
}

/// Two policies of the same size.
fn two() -> String {
    policy("p1", "object.data.v != 'one'") + "---\n" + &policy("p2", "object.data.v != 'two'")
}

/// Where the first of them ends.
fn half(text: &str) -> usize {
    text.len() / 2 - "---\n".len() / 2
}

/// The folder as it should be, whatever is there, with a policy that tells of its `number`.
fn mend(place: &Place, number: usize) {
    let new = place.path("new");
    let _ = fs::remove_dir_all(&new);
    fs::create_dir(&new).unwrap();
    fs::write(new.join("a.yaml"), two()).unwrap();
    let third =
        policy("p3", "object.data.v != 'three'") + "---\n" + &policy(&format!("n{number:05}"), "true");
    fs::write(new.join("b.yaml"), third).unwrap();
    let (old, policies) = (place.path(&format!("old{number}")), place.path("policies"));
    let _ = fs::remove_dir_all(place.path("policies.gone"));
    // A folder, or whatever has taken its place.
    let _ = fs::rename(&policies, &old);
    fs::rename(&new, &policies).unwrap();
    if fs::symlink_metadata(&old).is_ok_and(|about| about.is_dir()) {
        fs::remove_dir_all(&old).unwrap();
    }
}

/// What callers were answered.
#[derive(Default)]
struct Answers {
    asked: usize,
    /// What was let through, by the case that was done meanwhile and the word.
    wrong: BTreeMap<String, usize>,
}

/// Asks what each of the policies denies, again and again, until all cases are `done`.
async fn evil(
    address: std::net::SocketAddr,
    tls: Arc<rustls::ClientConfig>,
    [done, all]: [Arc<AtomicUsize>; 2],
) -> Answers {
    let mut client = Client::connect(address, &tls).await.unwrap();
    let mut answers = Answers::default();
    loop {
        let number = done.load(Ordering::Relaxed);
        if number >= all.load(Ordering::Relaxed) {
            return answers;
        }
        for word in ["one", "two", "three"] {
            let answered = client.post("/validate", review("u", &json!({"v": word}))).await.unwrap();
            answers.asked += 1;
            if answered.json()["response"]["allowed"] != false {
                let (name, ..) = CASES[number % CASES.len()];
                *answers.wrong.entry(format!("{name}: {word}")).or_default() += 1;
            }
        }
    }
}

fn failures(metrics: &str, part: &str) -> usize {
    let failed = format!("admit_reloads_total{{part=\"{part}\",result=\"failure\"}} ");
    metrics.lines().find_map(|line| line.strip_prefix(&failed)).map_or(0, |count| count.parse().unwrap())
}

async fn vandalise(place: &Place, serving: &Serving, case: usize, round: usize) {
    let (name, outcome, vandal) = CASES[case];
    let before = failures(&serving.observed("/metrics").await.1, "policies");
    let waited = serving.log().matches("may still be written").count();
    vandal(&place.path("policies"));
    serving.signal("-HUP");
    match outcome {
        Refused => {
            serving.until("/metrics", |metrics| failures(metrics, "policies") > before).await;
        }
        Waits => {
            serving.log_until(|log| log.matches("may still be written").count() > waited);
        }
        Harmless => {}
    }
    let number = round * CASES.len() + case;
    mend(place, number);
    serving.signal("-HUP");
    let told = format!("\"n{number:05}\"");
    serving.until("/policies", |policies| policies.contains(&told)).await;
    assert_eq!(serving.observed("/readyz").await.0, 200, "{name}");
}

/// The cases, one after the other, `rounds` times beside `callers`.
pub(crate) async fn vandalised(rounds: usize, callers: usize, row: &mut Row) {
    let place = Place::new();
    mend(&place, 10_000);
    // A line for each denial is far more than what is waited for in the log.
    let serving = place.start_logging("info,admit::admission::log=warn", &["--shutdown-delay", "0"]);
    let counts = [0, rounds * CASES.len()].map(|count| Arc::new(AtomicUsize::new(count)));
    let mut calling = JoinSet::new();
    for _ in 0..callers {
        calling.spawn(evil(serving.webhook, place.tls(), counts.clone()));
    }
    let [done, _] = counts;
    for round in 0..rounds {
        for case in 0..CASES.len() {
            vandalise(&place, &serving, case, round).await;
            done.fetch_add(1, Ordering::Relaxed);
        }
    }
    let mut answers = Answers::default();
    while let Some(ended) = calling.join_next().await {
        let one = ended.unwrap();
        answers.asked += one.asked;
        for (case, count) in one.wrong {
            *answers.wrong.entry(case).or_default() += count;
        }
    }
    // The last word: told to end while a pipe is there.
    pipe(&place.path("policies/z.yaml"));
    serving.signal("-HUP");
    assert!(serving.terminate().success());
    row.measured(json!({
        "folders": CASES.len(), "rounds": rounds, "reviews": answers.asked,
        "wrong": answers.wrong.values().sum::<usize>(), "reloadedAfterEach": done.load(Ordering::Relaxed),
    }));
    assert!(answers.asked > 0 && answers.wrong.is_empty(), "{:?} of {}", answers.wrong, answers.asked);
}

#[tokio::test(flavor = "multi_thread")]
async fn row_43_vandalised_folders() {
    let mut row = Row::short(43, "vandalised folders");
    assert_eq!(CASES.len(), 32);
    vandalised(1, 1, &mut row).await;
}

/// A certificate that is none: a pipe, a device, a link to itself. The one in use goes on, and the next good one is taken.
#[tokio::test(flavor = "multi_thread")]
async fn row_43_certificates_that_are_no_files() {
    let mut row = Row::short(43, "certificates that are no files");
    let place = Place::new();
    let serving = place.start(&["--shutdown-delay", "0"]);
    let first = Client::connect(serving.webhook, &place.tls()).await.unwrap().certificate;
    let shown = async || Client::connect(serving.webhook, &place.tls()).await.unwrap().certificate;
    let vandals: [(&str, Vandal); 4] = [
        ("tls.crt", pipe),
        ("tls.key", pipe),
        ("tls.crt", |path| symlink("/dev/zero", path).unwrap()),
        ("tls.crt", |path| symlink("tls.crt", path).unwrap()),
    ];
    let (mut last, cases) = (first, vandals.len());
    for (name, vandal) in vandals {
        let before = failures(&serving.observed("/metrics").await.1, "certificate");
        over(&place.path(name), vandal);
        serving.signal("-HUP");
        serving.until("/metrics", |metrics| failures(metrics, "certificate") > before).await;
        assert_eq!(shown().await, last, "{name}");
        place.renew();
        while shown().await == last {
            tokio::task::yield_now().await;
        }
        last = shown().await;
    }
    over(&place.path("tls.crt"), pipe);
    serving.signal("-HUP");
    assert!(serving.terminate().success());
    // At the start they are told by name.
    let output = place.fails(&[]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && said.contains("tls.crt`: it is a named pipe"), "{said}");
    row.measured(json!({"cases": cases, "wrong": 0}));
}

/// A file that was cut at the border of a document is believed a second later, without anybody's doing; until then what it
/// said is in force.
#[tokio::test(flavor = "multi_thread")]
async fn row_43_a_file_that_stays_shorter_is_taken() {
    let mut row = Row::short(43, "cut at a border, for good");
    let place = Place::new();
    mend(&place, 0);
    let serving = place.start(&["--shutdown-delay", "0"]);
    cut(&place.path("policies/a.yaml"), half);
    serving.log_until(|log| log.contains("may still be written"));
    let policies = serving.until("/policies", |policies| !policies.contains("\"p2\"")).await;
    assert!(policies.contains("\"p1\"") && policies.contains("\"p3\""), "{policies}");
    // Only now: a connection that asks for nothing is closed.
    let mut client = Client::connect(serving.webhook, &place.tls()).await.unwrap();
    for (word, allowed) in [("one", false), ("two", true), ("three", false)] {
        let answered = client.post("/validate", review("u", &json!({"v": word}))).await.unwrap();
        assert_eq!(answered.json()["response"]["allowed"], allowed, "{word}");
    }
    assert_eq!(failures(&serving.observed("/metrics").await.1, "policies"), 0, "to wait is no failure");
    row.measured(json!({"wrong": 0}));
}

/// What a command line names itself may be a pipe: its text is in force for as long as the process lives.
#[tokio::test(flavor = "multi_thread")]
async fn policies_of_a_pipe_that_is_named_stay_in_force() {
    let place = Place::new();
    let path: PathBuf = place.path("pipe");
    pipe(&path);
    let writing = std::thread::spawn(move || fs::write(path, two()).unwrap());
    let serving = place.start(&["--policies", "pipe", "--shutdown-delay", "0"]);
    writing.join().unwrap();
    let (_, before) = serving.observed("/policies").await;
    assert!(before.contains("\"p2\""), "{before}");
    serving.signal("-HUP");
    serving.log_until(|log| log.contains("SIGHUP"));
    assert_eq!(serving.observed("/policies").await.1, before);
    assert_eq!(failures(&serving.observed("/metrics").await.1, "policies"), 0);
    assert!(serving.terminate().success());
}
