//! Tests that archives are what `tar` expects.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::process::Command;

use flate2::read::GzDecoder;

use super::*;

/// Returns type and contents of each entry.
fn entries(archive: &[u8]) -> BTreeMap<String, (EntryType, Vec<u8>)> {
    let mut archive = tar::Archive::new(GzDecoder::new(archive));
    let entries = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        let name = entry.path().unwrap().display().to_string();
        (name, (entry.header().entry_type(), content))
    });
    entries.collect()
}

#[test]
fn a_folder_is_one_archive_of_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("must-gather");
    let deep = folder.join("namespaces").join("n".repeat(120)).join("p".repeat(120));
    fs::create_dir_all(&deep).unwrap();
    fs::write(folder.join("version"), "must-gather\n1\n").unwrap();
    fs::write(deep.join("current.log"), vec![b'x'; 3_000_000]).unwrap();
    fs::write(dir.path().join("secret"), "not in it").unwrap();
    symlink(dir.path().join("secret"), folder.join("link")).unwrap();
    symlink("/proc/self", folder.join("proc")).unwrap();
    assert!(Command::new("mkfifo").arg(folder.join("pipe")).status().unwrap().success());

    let mut archive = Vec::new();
    let bundled = bundle(&folder, &mut archive).unwrap();
    assert_eq!((bundled.files, bundled.bytes), (2, 3_000_014));
    assert_eq!(bundled.incomplete, ["must-gather/pipe: neither file, folder nor link"]);
    let entries = entries(&archive);
    assert_eq!(entries["must-gather/version"].1, b"must-gather\n1\n");
    let log = entries.iter().find(|(name, _)| name.ends_with("current.log")).unwrap();
    assert_eq!(log.1.1.len(), 3_000_000);
    assert_eq!(entries["must-gather/link"].0, EntryType::Symlink);
    assert_eq!(entries["must-gather/proc"].0, EntryType::Symlink);
    assert!(!entries.keys().any(|name| name.contains("proc/")), "{:?}", entries.keys());

    // Unpacked by the tool tar.
    fs::write(dir.path().join("a.tar.gz"), &archive).unwrap();
    let unpacked = dir.path().join("unpacked");
    fs::create_dir(&unpacked).unwrap();
    let tar =
        Command::new("tar").arg("-xzf").arg(dir.path().join("a.tar.gz")).current_dir(&unpacked).status();
    assert!(tar.unwrap().success());
    assert_eq!(fs::read(unpacked.join("must-gather/version")).unwrap(), b"must-gather\n1\n");
}

#[test]
fn a_file_that_shrinks_costs_itself_alone() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a"), "four").unwrap();
    let mut exactly = Exactly { file: File::open(dir.path().join("a")).unwrap(), left: 10_000, short: None };
    let mut read = Vec::new();
    exactly.read_to_end(&mut read).unwrap();
    assert_eq!((read.len(), &read[..5]), (10_000, b"four\0".as_slice()));
    assert!(exactly.short.is_some());
    let mut exactly = Exactly { file: File::open(dir.path().join("a")).unwrap(), left: 2, short: None };
    read.clear();
    exactly.read_to_end(&mut read).unwrap();
    assert_eq!((read.as_slice(), exactly.short), (b"fo".as_slice(), None));
}

#[test]
fn a_folder_that_is_none_has_no_archive() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    assert!(bundle(&dir.path().join("absent"), Vec::new()).is_err());
    assert!(bundle(&dir.path().join("file"), Vec::new()).is_err());
}
