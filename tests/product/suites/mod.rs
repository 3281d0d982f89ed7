//! `admit test`: what it reads, what it prints, how it ends.

mod bad;
mod command;
mod golden;
mod init;
mod openshift;
mod options;
pub(crate) mod page;
mod schema;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::repository::root;

/// The suites that drawings are made of: passes and every kind of failure.
fn fixture() -> PathBuf {
    root().join("tests/product/suites/fixture")
}

fn admit(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_admit"))
        .arg("test")
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
