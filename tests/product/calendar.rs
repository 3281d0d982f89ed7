//! Row 46: nothing depends on the date, nor on where and in which language it is looked at.
//!
//! The short form moves the clock of embedded servers. The full one runs every test program at other dates (Debian's
//! faketime), in other time zones and languages. Real kubectl and helm are static programs, which do not see a date that is
//! only pretended: they are left out there, and so is what compiles.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use admit_apiserver::{Clock, Server};
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use kube::api::{Api, DeleteParams, ObjectMeta, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::repository::{cargo, root};
use crate::soak::{percent, scaled};
use crate::support::reliability::Row;

const DAY: i64 = 24 * 60 * 60;
/// Years of 365 days back and ahead, and the ends of what certificates and tokens live.
const DAYS: [i64; 7] = [-4000, -400, -1, 0, 1, 400, 4000];

#[tokio::test]
async fn row_46_servers_live_at_any_time() {
    let mut row = Row::short(46, "embedded servers by clocks of their own");
    let mut checked = 0;
    for days in DAYS {
        let start = Timestamp::now().as_second() + days * DAY;
        let seconds = Arc::new(AtomicI64::new(start));
        let shown = Arc::clone(&seconds);
        let clock = Clock::new(move || Timestamp::from_second(shown.load(Ordering::SeqCst)).unwrap());
        let server = Server::builder().clock(clock).build().await.unwrap();
        let client = Client::new(server.router(), "default");
        checked += times(&client, &seconds).await;
    }
    row.measured(json!({"dates": DAYS.len(), "times": checked, "wrong": 0}));
}

/// Creates, asks for a token, deletes; how many times were right.
async fn times(client: &Client, seconds: &AtomicI64) -> usize {
    let now = || Timestamp::from_second(seconds.load(Ordering::SeqCst)).unwrap();
    let named = |name: &str| ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let data = Some([("a".to_owned(), "b".to_owned())].into());
    let created = ConfigMap { metadata: named("a"), data, ..ConfigMap::default() };
    let created = maps.create(&PostParams::default(), &created).await.unwrap();
    assert_eq!(created.creation_timestamp().unwrap().0, now());
    assert_eq!(created.managed_fields()[0].time.as_ref().unwrap().0, now());

    seconds.fetch_add(3 * DAY, Ordering::SeqCst);
    let table = http::Request::get("/api/v1/namespaces/default/configmaps/a")
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
    let table: Value = client.request(table.body(Vec::new()).unwrap()).await.unwrap();
    assert_eq!(table["rows"][0]["cells"][2], "3d");

    let accounts: Api<ServiceAccount> = Api::default_namespaced(client.clone());
    let account = ServiceAccount { metadata: named("joe"), ..ServiceAccount::default() };
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let spec = TokenRequestSpec { expiration_seconds: Some(600), ..TokenRequestSpec::default() };
    let asked = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
    let token =
        accounts.create_token_request("joe", &PostParams::default(), &asked).await.unwrap().status.unwrap();
    assert_eq!(token.expiration_timestamp.unwrap().0.as_second(), now().as_second() + 600);
    let known = |client: Client, token: String| async move {
        let asked =
            http::Request::get("/api/v1/namespaces").header("authorization", format!("Bearer {token}"));
        match client.request::<Value>(asked.body(Vec::new()).unwrap()).await {
            Err(kube::Error::Api(status)) => status.code,
            other => panic!("an account without roles should be refused: {other:?}"),
        }
    };
    let bearer = token.token.unwrap();
    assert_eq!(known(client.clone(), bearer.clone()).await, 403);
    seconds.fetch_add(600, Ordering::SeqCst);
    assert_eq!(known(client.clone(), bearer).await, 401);

    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = Namespace { metadata: named("going"), ..Namespace::default() };
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    let going = namespaces.delete("going", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert_eq!(going.metadata.deletion_timestamp.unwrap().0, now());
    7
}

/// A place in time and on earth.
struct Setting {
    name: &'static str,
    /// As faketime takes it; none for the machine's own date, at which only those tests run that other dates leave out.
    offset: Option<&'static str>,
    variables: &'static [(&'static str, &'static str)],
}

/// Another date, another zone and another language at once: a test that any of them breaks fails, in a third of the time
/// that each by itself would take. The language is LANG's: of an LC_ALL that is not installed every bash warns.
const SETTINGS: &[Setting] = &[
    Setting {
        name: "in 400 days, in Kathmandu, in Turkish",
        offset: Some("+400d"),
        variables: &[("TZ", "Asia/Kathmandu"), ("LANG", "tr_TR.UTF-8")],
    },
    Setting {
        name: "400 days ago, on Chatham, in no language",
        offset: Some("-400d"),
        variables: &[("TZ", "Pacific/Chatham"), ("LANG", "C")],
    },
    Setting {
        name: "today, in Kathmandu, in Turkish",
        offset: None,
        variables: &[("TZ", "Asia/Kathmandu"), ("LANG", "tr_TR.UTF-8")],
    },
];

/// What runs as containers has the environment that its Pod gives it, and so the machine's date.
const IN_CONTAINERS: [&str; 5] = [
    "jobs::volumes::a_pod_is_its_account_to_the_api_server",
    "datagather::runners::in_up_a_job_gathers_under_an_account_of_its_own",
    "datagather::leaders::row_35_a_leader_that_stands_still_does_nothing_twice",
    "mustgather::leaders::row_35_a_leader_that_stands_still_gathers_nothing_twice",
    "mustgather::up::from_the_object_to_the_file_on_the_server",
];

/// Left out at other dates: PostgreSQL's alarms, by which it finds deadlocks, do not go off under faketime.
const BY_ALARM: &str = "cyndi::faults::cy_08_17_a_deadlock";

/// What faketime says where a process of its number was killed before, and left a semaphore of that name.
const NOT_BEGUN: &[u8] = b"faketime: sem_open: File exists";
const OTHER_PROCESSES: usize = 5;

/// The program whose tests other dates leave out.
const WITH_CONTAINERS: &str = "product";

/// A program of the gate, with its arguments, and the folder that it runs in.
struct Program {
    name: String,
    path: PathBuf,
    arguments: Vec<String>,
    folder: PathBuf,
}

#[test]
#[ignore = "every test program, twice; scripts/soak runs it"]
fn row_46_the_gate_on_other_dates_and_in_other_places() {
    if Command::new("faketime").arg("--version").stdout(Stdio::null()).status().is_err() {
        let reason = "row 46 is not measured: there is no faketime on the PATH (Debian's package faketime)";
        return testing::skip(testing::Need::Other, reason);
    }
    let mut row = Row::full(46, "every test program at other dates and places", percent());
    let tools = without_static_tools();
    let programs = programs();
    let mut failed = Vec::new();
    let mut passed = BTreeMap::new();
    for setting in &SETTINGS[..scaled(SETTINGS.len())] {
        let runs = |program: &&Program| setting.offset.is_some() || program.name == WITH_CONTAINERS;
        for program in programs.iter().filter(runs) {
            match run(program, setting, tools.path()) {
                Ok(tests) => *passed.entry(setting.name).or_insert(0) += tests,
                Err(told) => failed.push(format!("{} ({}):\n{told}", program.name, setting.name)),
            }
        }
    }
    let of_today =
        SETTINGS.iter().find(|setting| setting.offset.is_none()).and_then(|setting| passed.get(setting.name));
    if let Some(passed) = of_today {
        assert_eq!(*passed, IN_CONTAINERS.len() + 1, "what other dates leave out is called otherwise by now");
    }
    row.measured(json!({"programs": programs.len(), "passed": passed, "failed": failed.len(),
        "leftOut": "kubectl, helm, what compiles; at other dates what runs as containers, and a deadlock"}));
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

/// Runs the program to its end; how many tests passed, or what it printed.
fn run(program: &Program, setting: &Setting, tools: &Path) -> Result<usize, String> {
    say(&format!("{}: {}", setting.name, program.name));
    let mut output = once(program, setting, tools).map_err(|error| error.to_string())?;
    for _ in 0..OTHER_PROCESSES {
        if !output.stderr.starts_with(NOT_BEGUN) {
            break;
        }
        output = once(program, setting, tools).map_err(|error| error.to_string())?;
    }
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        return Err(format!("{}\n{told}\n{}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    let counts = told
        .lines()
        .filter_map(|line| line.strip_prefix("test result: ok. ")?.split(' ').next()?.parse::<usize>().ok());
    Ok(counts.sum::<usize>().max(1))
}

fn once(program: &Program, setting: &Setting, tools: &Path) -> io::Result<Output> {
    let left_out = IN_CONTAINERS.iter().chain([&BY_ALARM]);
    let mut command = match setting.offset {
        Some(offset) => {
            let mut faketime = Command::new("faketime");
            // Waits are measured by the monotonic clock, which goes on as it does.
            faketime.args(["-f", offset]).arg(&program.path).env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
            if program.name == WITH_CONTAINERS {
                faketime.args(left_out.flat_map(|test| ["--skip", test]));
            }
            faketime
        }
        None => {
            let mut command = Command::new(&program.path);
            command.args(left_out);
            command
        }
    };
    command.args(&program.arguments).current_dir(&program.folder).env("PATH", tools);
    command.env("CARGO_MANIFEST_DIR", &program.folder).env("ADMIT_RELIABILITY", "/dev/null");
    command.env_remove("ADMIT_SOAK_PERCENT").envs(setting.variables.iter().copied());
    command.env_remove("LC_ALL").stdin(Stdio::null()).output()
}

/// What `scripts/test` runs, built as it builds it.
fn programs() -> Vec<Program> {
    let mut programs = built(&["test", "--workspace", "--no-run"]);
    programs.retain(|program| !program.name.is_empty());
    assert!(programs.len() >= 6, "cargo built {} test programs", programs.len());
    let program = |name: &str, path: PathBuf, arguments: &[&str]| Program {
        name: name.to_owned(),
        path,
        arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
        folder: root(),
    };
    programs.push(program(
        "policies",
        env!("CARGO_BIN_EXE_admit").into(),
        &["test", "--require-tests", "policies/"],
    ));
    let built = built(&["build", "--profile", "corpora", "-p", "conformance"]);
    programs.push(program("corpora", built.into_iter().next().unwrap().path, &[]));
    programs
}

/// The programs that cargo says it built.
fn built(arguments: &[&str]) -> Vec<Program> {
    let output = cargo()
        .args(arguments)
        .args(["--locked", "--quiet", "--message-format=json"])
        .current_dir(root())
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "cargo {arguments:?}");
    let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let messages = lines.map(|line| serde_json::from_slice::<Value>(line).unwrap());
    let is_test = arguments.first() == Some(&"test");
    let programs = messages.filter(|message| !is_test || message["profile"]["test"] == true);
    let programs = programs.filter_map(|message| {
        let manifest = Path::new(message["manifest_path"].as_str()?);
        Some(Program {
            name: message["target"]["name"].as_str()?.to_owned(),
            path: message["executable"].as_str()?.into(),
            arguments: Vec::new(),
            folder: manifest.parent()?.to_owned(),
        })
    });
    programs.collect()
}

/// A folder to be the PATH: all tools that there are, but for those that do not see a pretended date.
fn without_static_tools() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    say("LEFT OUT: kubectl and helm, which are static programs, and see no other date than the machine's");
    for found in env::split_paths(&env::var_os("PATH").unwrap()).filter_map(|path| fs::read_dir(path).ok()) {
        for entry in found.filter_map(Result::ok) {
            let name = entry.file_name();
            let is_static = name == "kubectl" || name == "helm" || name == "kubectl-admit";
            let runs = fs::metadata(entry.path())
                .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0);
            if runs && !is_static {
                // The first of a name counts, as on the PATH.
                let _ = symlink(entry.path(), folder.path().join(name));
            }
        }
    }
    folder
}

fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
