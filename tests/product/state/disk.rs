//! Row 42: the state folder of `admit up`. Who can read it, what a full disk does, and what damage does.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use http::Request;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

use crate::running::{Running, Workplace};
use crate::soak::Random;
use crate::support::reliability::Row;

const PATIENCE: Duration = Duration::from_mins(1);
const PAGE: usize = 4096;

fn modes(folder: &Path) -> Vec<(PathBuf, u32)> {
    let mut all = vec![(folder.to_owned(), fs::metadata(folder).unwrap().permissions().mode() & 0o7777)];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(modes(&path));
        } else {
            all.push((path.clone(), fs::metadata(&path).unwrap().permissions().mode() & 0o7777));
        }
    }
    all
}

fn open_to_others(folder: &Path) -> Vec<(PathBuf, u32)> {
    modes(folder).into_iter().filter(|(_, mode)| mode & 0o077 != 0).collect()
}

/// A store with a Secret and more, and no process on it.
async fn stopped() -> Workplace {
    let place = Workplace::new();
    let running = place.start();
    let client = place.client().await;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "default");
    let secret = json!({"metadata": {"name": "canary"}, "stringData": {"token": "CANARYSECRET".repeat(50)}});
    secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
    assert!(running.terminate().success());
    place
}

#[tokio::test(flavor = "multi_thread")]
async fn row_42_nobody_else_reads_the_state() {
    let mut row = Row::short(42, "modes");
    let place = stopped().await;
    let state = place.path().join(".admit");
    assert_eq!(open_to_others(&state), []);
    let all = modes(&state);
    for file in ["data.redb", "ca.key", "kubeconfig", "archives/.claims"] {
        assert!(all.iter().any(|(path, _)| path.ends_with(file)), "{file}: {all:?}");
    }
    // As an older version left it.
    for (path, mode) in &all {
        let wide = if path.is_dir() { 0o755 } else { 0o644 };
        fs::set_permissions(path, Permissions::from_mode(mode | wide)).unwrap();
    }
    let running = place.start();
    assert_eq!(open_to_others(&state), []);
    assert!(running.terminate().success());
    let log = place.log();
    assert_eq!(log.matches("could be opened by others").count(), 1, "{log}");
    assert!(log.contains(".admit") && log.contains("mode 0755"), "{log}");

    // Where the folder is of somebody's choice and holds other things, it stays as it is.
    let shared = place.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, Permissions::from_mode(0o755)).unwrap();
    fs::write(shared.join("theirs"), "").unwrap();
    let running = place.start_with(&["--state-dir", "shared"]);
    let open: Vec<PathBuf> = open_to_others(&shared).into_iter().map(|(path, _)| path).collect();
    assert_eq!(open, [shared.clone(), shared.join("theirs")]);
    assert!(running.terminate().success());
    assert!(place.log().contains("stays so"), "{}", place.log());
    row.measured(json!({"files and folders": all.len(), "open to others": 0}));
}

/// Each damage with the file that it makes of `bytes`, and whether it has to be refused. Pages that nothing refers to may be
/// damaged or cut off without harm, and which ones these are is redb's affair.
fn damages(bytes: &[u8], flips: usize) -> Vec<(String, Vec<u8>, bool)> {
    let cut = |len: usize| bytes[..len].to_vec();
    let filled = |from: usize, to: usize, byte: u8| {
        let mut bytes = bytes.to_vec();
        bytes[from..to].fill(byte);
        bytes
    };
    let secret = (0..bytes.len() - 8).find(|at| bytes[*at..].starts_with(b"Q0FOQVJZ")).unwrap();
    let page = secret / PAGE * PAGE;
    let mut all = vec![
        ("empty".to_owned(), Vec::new(), true),
        ("half".to_owned(), cut(bytes.len() / 2), true),
        ("no header".to_owned(), filled(0, PAGE, 0), true),
        ("garbage for a header".to_owned(), filled(0, 512, 0xa5), true),
        ("text".to_owned(), b"no database".to_vec(), true),
        ("all zeros".to_owned(), vec![0; bytes.len()], true),
        ("one page short".to_owned(), cut(bytes.len() - PAGE), false),
        ("a page of objects".to_owned(), filled(page, page + PAGE, 0x5a), false),
    ];
    let mut random = Random(0x0ad1_0042_5eed_0001);
    for n in 0..flips {
        let mut flipped = bytes.to_vec();
        let bit = if n == 0 { secret * 8 } else { random.below(bytes.len() * 8) };
        flipped[bit / 8] ^= 1 << (bit % 8);
        all.push((format!("bit {bit}"), flipped, false));
    }
    all
}

/// Starts on each of them: refused with a message, or exactly what was stored.
async fn start_on_damage(flips: usize) -> serde_json::Value {
    let place = stopped().await;
    let file = place.path().join(".admit/data.redb");
    let bytes = fs::read(&file).unwrap();
    let (mut refused, mut whole) = (0, 0);
    for (name, damaged, has_to) in damages(&bytes, flips) {
        fs::write(&file, damaged).unwrap();
        // Where the damage does no harm it starts, and would not end.
        let mut command = Command::new("timeout");
        command
            .args(["--preserve-status", "10", env!("CARGO_BIN_EXE_admit"), "up"])
            .current_dir(place.path());
        command.args(["--listen", "127.0.0.1:0", "--admission-listen", "127.0.0.1:0"]);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() {
            assert!(!has_to, "{name}: {said}");
            let running = place.start();
            let secrets: Api<Secret> = Api::namespaced(place.client().await, "default");
            let found = secrets.get("canary").await.unwrap_or_else(|error| panic!("{name}: {error}: {said}"));
            assert_eq!(found.data.unwrap()["token"].0, "CANARYSECRET".repeat(50).into_bytes(), "{name}");
            assert!(running.terminate().success());
            whole += 1;
            continue;
        }
        assert_eq!(output.status.code(), Some(2), "{name}: {said}");
        assert_eq!(said.lines().count(), 1, "{name}: {said}");
        assert!(said.contains("data.redb") && said.contains("delete it"), "{name}: {said}");
        refused += 1;
    }
    json!({"damaged stores": refused + whole, "refused by name": refused, "untouched": whole, "taken as data": 0})
}

#[tokio::test(flavor = "multi_thread")]
async fn row_42_damage_is_named_and_never_taken_for_data() {
    let mut row = Row::short(42, "damaged stores");
    row.measured(start_on_damage(1).await);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; run by scripts/soak"]
async fn row_42_damage_at_length() {
    let mut row = Row::full(42, "damaged stores at length", 100);
    row.measured(start_on_damage(40).await);
}

/// Fills the store of a running process until it refuses, then gives it room. Answers what was acknowledged.
async fn fill(place: &Workplace, shrink: impl FnOnce(), grow: impl FnOnce()) -> Vec<String> {
    let client = place.client().await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let put = async |name: &str, size: usize| {
        let map = json!({"metadata": {"name": name}, "data": {"text": "x".repeat(size)}});
        maps.create(&PostParams::default(), &serde_json::from_value(map).unwrap()).await
    };
    assert!(ready(&client).await.is_ok());
    let mut acknowledged: Vec<String> = (0..10).map(|n| format!("m{n}")).collect();
    for name in &acknowledged {
        put(name, 1000).await.unwrap();
    }
    shrink();
    let refused = loop {
        let name = format!("m{}", acknowledged.len());
        match put(&name, 200_000).await {
            Ok(_) => acknowledged.push(name),
            Err(error) => break error.to_string(),
        }
        assert!(acknowledged.len() < 1000, "the disk is never full");
    };
    assert!(refused.contains("the store cannot write"), "{refused}");
    for n in 0..20 {
        put(&format!("r{n}"), 10).await.unwrap_err();
    }
    let not_ready = ready(&client).await.unwrap_err();
    assert!(not_ready.contains("[-]store failed"), "{not_ready}");
    assert_eq!(names(&maps).await, acknowledged);
    assert_eq!(place.log().matches("the store cannot write").count(), 1, "{}", place.log());

    grow();
    let deadline = Instant::now() + PATIENCE;
    while ready(&client).await.is_err() {
        assert!(Instant::now() < deadline, "not ready again:\n{}", place.log());
    }
    put("n-again", 10).await.unwrap();
    acknowledged.push("n-again".to_owned());
    assert!(place.log().contains("the store writes again"), "{}", place.log());
    acknowledged
}

/// `/readyz`; its text where it is not ready.
async fn ready(client: &Client) -> Result<(), String> {
    let request = Request::get("/readyz?verbose").body(Vec::new()).unwrap();
    client.request_text(request).await.map(drop).map_err(|error| format!("{error:?}"))
}

async fn names(maps: &Api<ConfigMap>) -> Vec<String> {
    let list = maps.list(&ListParams::default()).await.unwrap();
    let names = list.items.into_iter().filter_map(|map| map.metadata.name);
    let mut names: Vec<String> = names.filter(|name| name != "kube-root-ca.crt").collect();
    names.sort_by_key(|name| (name[..1].to_owned(), name[1..].parse::<usize>().unwrap_or(usize::MAX)));
    names
}

async fn kept(place: &Workplace, running: Running, start: impl Fn() -> Running, acknowledged: &[String]) {
    assert!(running.terminate().success());
    let running = start();
    let maps: Api<ConfigMap> = Api::namespaced(place.client().await, "default");
    assert_eq!(names(&maps).await, acknowledged);
    assert!(running.terminate().success());
}

/// No disk is filled: the process may not write files further than they are, which fails where a full disk does.
#[tokio::test(flavor = "multi_thread")]
async fn row_42_a_full_disk_is_told_and_left_behind() {
    let mut row = Row::short(42, "full disk, by a limit of the process");
    let place = Workplace::new();
    let mut command = Command::new("sh");
    // The signal that comes with the error would end the process.
    command.args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"]).current_dir(place.path());
    command.arg(env!("CARGO_BIN_EXE_admit"));
    command.args(["up", "--listen", "127.0.0.1:0", "--admission-listen", "127.0.0.1:0"]);
    let running = place.launch(command);
    let id = running.id().to_string();
    let limit = |bytes: &str| {
        let limited = Command::new("prlimit").args(["--pid", &id, &format!("--fsize={bytes}:")]).status();
        assert!(limited.expect("prlimit of util-linux").success());
    };
    let size = fs::metadata(place.path().join(".admit/data.redb")).unwrap().len();
    let acknowledged = fill(&place, || limit(&size.to_string()), || limit("unlimited")).await;
    row.measured(json!({"acknowledged": acknowledged.len(), "lost": 0, "lines in the log": 2}));
    kept(&place, running, || place.start(), &acknowledged).await;
}

/// The same on a file system that is full.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root, to mount a small disk; run by scripts/soak"]
async fn row_42_a_full_disk_of_its_own() {
    let mut row = Row::full(42, "full disk, a tmpfs", 100);
    let place = Workplace::new();
    let disk = place.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let mount = |options: &str| {
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(&disk);
        command.status().is_ok_and(|status| status.success())
    };
    if !mount("size=6m") {
        row.measured(json!({"skipped": "nothing can be mounted here: run it as root"}));
        return;
    }
    let start = || place.start_with(&["--state-dir", "disk/.admit"]);
    let running = start();
    fs::create_dir_all(place.path().join(".admit")).unwrap();
    let use_kubeconfig = || fs::copy(disk.join(".admit/kubeconfig"), place.kubeconfig()).map(drop).unwrap();
    use_kubeconfig();
    let acknowledged = fill(&place, || {}, || assert!(mount("remount,size=64m"))).await;
    row.measured(json!({"acknowledged": acknowledged.len(), "lost": 0}));
    let again = || {
        let running = start();
        use_kubeconfig();
        running
    };
    kept(&place, running, again, &acknowledged).await;
    assert!(Command::new("umount").arg(&disk).status().unwrap().success());
}
