//! The double of Kafka Connect behaves towards clients that others wrote for the real one as these expect: kafka-connect-py and
//! kafkaconnect, two packages of Python that have nothing in common but `requests`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::connect::{Connect, Manner};

const PACKAGES: [&str; 2] = ["kafka-connect-py==1.0.0", "kafkaconnect==1.3.1"];

/// A Python that has the packages; why there is none.
fn python() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("connect-clients");
    let program = folder.join("bin/python");
    let has = || Command::new(&program).args(["-c", "import kafka_connect, kafkaconnect.connect"]).output();
    if has().is_ok_and(|found| found.status.success()) {
        return Ok(program);
    }
    let said = |what: &str, tried: std::io::Result<Output>| match tried {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!(
            "{what}: {}",
            String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default()
        )),
        Err(error) => Err(format!("{what}: {error}")),
    };
    said("python3 -m venv", Command::new("python3").args(["-m", "venv"]).arg(&folder).output())?;
    let install = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--retries",
        "1",
        "--timeout",
        "15",
    ];
    said("pip install", Command::new(&program).args(install).args(PACKAGES).output())?;
    said("import", has())?;
    Ok(program)
}

#[tokio::test(flavor = "multi_thread")]
async fn cy_10_12_clients_that_others_wrote_find_what_they_expect() {
    let program = match tokio::task::spawn_blocking(python).await.unwrap() {
        Ok(program) => program,
        Err(reason) => {
            return testing::skip(
                testing::Need::Other,
                &format!("{} cannot be installed: {reason}", PACKAGES.join(" and ")),
            );
        }
    };
    let connect = Connect::start(Manner::default()).await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/product/cyndi/clients.py");
    let mut command = Command::new(program);
    command.arg(script).args([connect.url(0), connect.url(1)]);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(told.ends_with("both clients are content\n"), "{told}");
}
