//! What may be wrong with a whole server (CY §8, last rows), each time with one of its own: no role of the readers, recovery, and a
//! disk that is full.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::bench::{Bench, Status};
use crate::support::postgres::{Pair, Server, owner};

/// A disk of two MiB, until the value goes.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// None where the machine lets nobody mount.
    fn mount(at: &Path) -> Option<Self> {
        fs::create_dir(at).unwrap();
        let (user, group) = owner();
        let options = format!("size=2m,uid={user},gid={group},mode=700");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "small"]).arg(at).status();
        mounted.is_ok_and(|it| it.success()).then(|| Self(at.to_owned()))
    }

    fn fill(&self) {
        let mut file = fs::File::create(self.0.join("filler")).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
        while file.write_all(&[0]).is_ok() {}
    }

    fn free(&self) {
        fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The server is still there, and is ended next.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// A pipeline whose table is shown.
async fn shown(bench: &Bench) -> Status {
    let started = bench.until_started().await;
    bench.pair.fill(started.table(), [1]).await;
    bench.until_shown(started.table()).await
}

/// Asks for a refresh, which comes to nothing with these words until `mended`. The view shows what it showed all the time.
async fn refresh_fails(bench: &Bench, words: &str, mended: impl AsyncFnOnce()) {
    // Events of one process that differ in their note alone are told as one.
    let running = bench.start();
    let before = bench.until(|status| status.state() == "VALID").await;
    bench.change(&json!({"refresh": words})).await;
    bench.until_event("ReconcileFailed", words).await;
    let now = bench.until(|status| status.state() == "NEW").await;
    assert_eq!((now.text("activeTableName"), now.table()), (before.table(), before.table()));
    assert_eq!(bench.pair.relations().await, ["hosts", before.table()]);
    mended().await;
    let again = bench.until_built_anew_beside(before.table()).await;
    bench.pair.fill(again.table(), [1]).await;
    bench.until_shown(again.table()).await;
    running.stop(bench).await;
}

#[tokio::test]
async fn cy_08_17_a_server_without_the_role_of_the_readers() {
    let Some(server) = Server::own() else { return };
    let bench = Bench::on(Pair::on(&server).await).await;
    bench.pair.hosts([1]).await;
    let admin = bench.pair.admin(&bench.pair.app).await;
    admin.batch_execute("DROP OWNED BY cyndi_reader; DROP ROLE cyndi_reader").await.unwrap();
    let running = bench.start();
    bench.create(&json!({})).await;
    let words = "cannot make the table: role \"cyndi_reader\" does not exist (SQLSTATE 42704)";
    let told = bench.until_event("ReconcileFailed", words).await;
    bench.until_counted(&told).await;
    assert_eq!(bench.pipelines.get("app").await.unwrap().data["status"], Value::Null);
    assert!(bench.pair.relations().await.is_empty(), "a table without its rights is left behind");
    admin
        .batch_execute("CREATE ROLE cyndi_reader; GRANT USAGE ON SCHEMA inventory TO cyndi_reader")
        .await
        .unwrap();
    shown(&bench).await;
    running.stop(&bench).await;
}

#[tokio::test]
async fn cy_08_17_a_server_in_recovery_and_one_whose_disk_is_full() {
    let Some(server) = Server::own() else { return };
    let bench = Bench::on(Pair::on(&server).await).await;
    bench.pair.hosts([1]).await;
    let running = bench.start();
    bench.create(&json!({})).await;
    shown(&bench).await;
    running.stop(&bench).await;

    server.follow_nobody();
    let promote = async || {
        let admin = bench.pair.admin(&bench.pair.app).await;
        assert!(admin.query_one("SELECT pg_promote()", &[]).await.unwrap().get::<_, bool>(0));
    };
    let words =
        "cannot make the table: cannot execute CREATE TABLE in a read-only transaction (SQLSTATE 25006)";
    refresh_fails(&bench, words, promote).await;

    let Some(disk) = SmallDisk::mount(&server.folder().join("small")) else {
        return testing::skip(testing::Need::Other, "nobody may mount here: no disk can be full");
    };
    let (place, user) = (disk.0.display(), &bench.pair.user);
    let admin = bench.pair.admin(&bench.pair.app).await;
    for statement in [
        format!("CREATE TABLESPACE small LOCATION '{place}'"),
        format!("GRANT CREATE ON TABLESPACE small TO {user}"),
        format!("ALTER ROLE {user} SET default_tablespace = small"),
    ] {
        admin.batch_execute(&statement).await.unwrap();
    }
    disk.fill();
    refresh_fails(&bench, "No space left on device (SQLSTATE 53100)", async || disk.free()).await;
}
