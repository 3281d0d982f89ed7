//! Tests obfuscated folders: secrets are put in every possible place, and the results are compared.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::unix::fs::symlink;

use super::*;

const CANARY: &str = "canary-4716";

/// Creates a must-gather with something to hide in every possible place.
fn gathered() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &[u8]| {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let secret = format!("kind: SecretList\nitems:\n- kind: Secret\n  data: {{a: {CANARY}}}\n");
    put("img/namespaces/n/core/secrets.yaml", secret.as_bytes());
    put(
        "img/namespaces/n/core/configmaps.yaml",
        format!("kind: ConfigMap\ndata: {{a: {CANARY}}}\n").as_bytes(),
    );
    put(
        "img/namespaces/n/core/all.json",
        format!("{{\"kind\":\"List\",\"items\":[{{\"kind\":\"Secret\",\"x\":\"{CANARY}\"}}]}}").as_bytes(),
    );
    put(
        "img/nodes/ip-10-0-0-1.corp.example.yaml",
        b"kind: Node\naddress: 10.0.0.1\nmac: 52:54:00:5e:ee:c6\n",
    );
    put(
        "img/logs/current.log",
        b"dial 10.0.0.1: and 10.0.0.2, fe80::1\nhttps://api.corp.example\n\xff\xfe\n",
    );
    put("img/core.1", b"\x7fELF\0\0\0 10.0.0.1");
    put("img/inner.zip", b"PK\x03\x04 10.0.0.1");
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(b"from 10.0.0.2\n").unwrap();
    put("img/old.log.gz", &gzip.finish().unwrap());
    let mut tarred = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut header = tar::Header::new_ustar();
    header.set_size(8);
    tarred.append_data(&mut header, "a", b"10.0.0.1".as_slice()).unwrap();
    put("img/more.tar.gz", &tarred.into_inner().unwrap().finish().unwrap());
    symlink("ip-10-0-0-1.corp.example.yaml", dir.path().join("img/nodes/link")).unwrap();
    symlink("/etc/hostname", dir.path().join("img/out")).unwrap();
    dir
}

fn cleaned(rules: &Ruleset, from: &Path) -> (tempfile::TempDir, Cleaned, BTreeMap<String, String>) {
    let to = tempfile::tempdir().unwrap();
    let mut cleaner = Cleaner::new(rules, &["corp.example".to_owned()]).unwrap();
    let mut scratch = tempfile::tempfile().unwrap();
    cleaner.clean(from, &mut scratch, &mut Folder::new(&to.path().join("out"))).unwrap();
    let (done, table) = cleaner.finish();
    (to, done, table)
}

/// Returns every file below a folder with its contents, uncompressed.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let (mut left, mut found) = (vec![folder.to_owned()], BTreeMap::new());
    while let Some(path) = left.pop() {
        let name = path.strip_prefix(folder).unwrap().display().to_string();
        let known = fs::symlink_metadata(&path).unwrap();
        if known.is_dir() {
            left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if known.is_symlink() {
            found.insert(name, fs::read_link(&path).unwrap().display().to_string().into_bytes());
        } else {
            let mut bytes = fs::read(&path).unwrap();
            if bytes.starts_with(b"\x1f\x8b") {
                let packed = std::mem::take(&mut bytes);
                MultiGzDecoder::new(packed.as_slice()).read_to_end(&mut bytes).unwrap();
            }
            found.insert(name, bytes);
        }
    }
    found
}

fn has(haystack: &[u8], needle: &str) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle.as_bytes())
}

#[test]
fn nothing_that_is_to_be_hidden_is_left_anywhere() {
    let from = gathered();
    let (to, done, table) = cleaned(&Ruleset::usual(), from.path());
    let files = files(&to.path().join("out"));
    for (path, bytes) in &files {
        for hidden in ["10.0.0.", "10-0-0-", "52:54", "fe80", "corp.example", CANARY] {
            assert!(!path.contains(hidden) && !has(bytes, hidden), "{hidden} in {path}");
        }
    }
    let text = |path: &str| String::from_utf8_lossy(&files[path]).into_owned();
    let node = "img/nodes/ip-x-ipv4-0000000001-x.domain0000000001.yaml";
    // Labels are numbered in the order of paths: the log, which names the addresses first, comes first.
    assert!(
        text(node).starts_with("kind: Node\naddress: x-ipv4-0000000001-x\nmac: x-mac-0000000001-x\n"),
        "{}",
        text(node)
    );
    assert_eq!(text("img/nodes/link"), "ip-x-ipv4-0000000001-x.domain0000000001.yaml");
    assert_eq!(text("img/old.log.gz"), "from x-ipv4-0000000002-x\n");
    assert_eq!(
        files["img/logs/current.log"],
        b"dial x-ipv4-0000000001-x: and x-ipv4-0000000002-x, x-ipv6-0000000001-x\nhttps://api.domain0000000001\n\xff\xfe\n"
    );
    let log = text(LOG);
    for line in [
        "left out: img/namespaces/n/core/secrets.yaml: the rules leave out Secret",
        "left out: img/namespaces/n/core/configmaps.yaml: the rules leave out ConfigMap",
        "left out: img/namespaces/n/core/all.json: the rules leave out Secret",
        "left out: img/core.1: no text, which is not looked into",
        "left out: img/inner.zip: an archive, which is not looked into",
        "left out: img/more.tar.gz: an archive, which is not looked into",
        "left out: img/out: a link that leads out of the folder",
        "replaced: img/old.log.gz: IPv4 addresses 1",
    ] {
        assert!(log.contains(line), "{line}:\n{log}");
    }
    assert_eq!((done.files, done.left_out), (3, 7), "{log}");
    assert_eq!(table["10.0.0.1"], "x-ipv4-0000000001-x");
    assert_eq!(files.len(), 5, "{:?}", files.keys());
}

/// An archive has the same contents, below its root folder.
#[test]
fn an_archive_holds_what_a_folder_holds() {
    let from = gathered();
    let mut cleaner = Cleaner::new(&Ruleset::usual(), &["corp.example".to_owned()]).unwrap();
    let mut packed = tempfile::tempfile().unwrap();
    let mut archive = Archive::new(packed.try_clone().unwrap(), Path::new("must-gather"));
    cleaner.clean(from.path(), &mut tempfile::tempfile().unwrap(), &mut archive).unwrap();
    packed.rewind().unwrap();
    let unpacked = tempfile::tempdir().unwrap();
    tar::Archive::new(flate2::read::GzDecoder::new(packed)).unpack(unpacked.path()).unwrap();
    let (to, ..) = cleaned(&Ruleset::usual(), from.path());
    assert_eq!(files(&unpacked.path().join("must-gather")), files(&to.path().join("out")));
}

/// Two files whose names differ only in hidden parts, and a rule that would lead out of the folder.
#[test]
fn no_file_takes_the_place_of_another_or_leaves_the_folder() {
    let from = tempfile::tempdir().unwrap();
    for name in ["10.0.0.1", "10.0.0.2"] {
        fs::write(from.path().join(name), name).unwrap();
    }
    fs::write(from.path().join("up"), "up").unwrap();
    let rules = Ruleset::parse(
        "config: {obfuscate: [{type: IP, target: FilePath}, {type: Keywords, target: FilePath, replacement: {up: ../../up}}]}",
    )
    .unwrap();
    let (to, ..) = cleaned(&rules, from.path());
    let files = files(to.path());
    let names: Vec<_> = files.keys().map(String::as_str).collect();
    assert_eq!(names, ["out/obfuscation.log", "out/up", "out/xxx.xxx.xxx.xxx", "out/xxx.xxx.xxx.xxx~2"]);
    assert_eq!(files["out/xxx.xxx.xxx.xxx"], b"10.0.0.1");
}

/// Links and folders whose names differ only in hidden parts, and links whose steps upwards begin where other links lead: whatever is
/// made, none of them leads out of the folder, and nothing is lost without a word.
#[test]
fn no_link_leads_out_of_the_folder() {
    let from = tempfile::tempdir().unwrap();
    let below = |path: &str| from.path().join(path);
    for (folder, link, target) in [
        // Shown as a folder beside it is, of which the link would take the place.
        ("a", "10.0.0.1", "."),
        ("a/10.0.0.2", "out", "../.."),
        // Inside, and outside once the link is there through which it leads.
        ("b/c", "root", "../.."),
        ("b/c", "out", "root/.."),
        ("b/c", "far", "../../.."),
        // Absolute by a rule.
        ("d", "rule", "here"),
        ("d", "fine", "../a/./x/../10.0.0.2"),
    ] {
        fs::create_dir_all(below(folder)).unwrap();
        symlink(target, below(folder).join(link)).unwrap();
    }
    let rules = Ruleset::parse(
        "config: {obfuscate: [{type: IP, target: FilePath}, {type: Keywords, target: FilePath, replacement: {here: /etc/passwd}}]}",
    )
    .unwrap();
    let (to, ..) = cleaned(&rules, from.path());
    let out = to.path().join("out").canonicalize().unwrap();
    let files = files(&out);
    let log = String::from_utf8_lossy(&files[LOG]).into_owned();
    let links: BTreeMap<_, _> = files.iter().filter(|(name, _)| *name != LOG).collect();
    for name in links.keys() {
        let end = out.join(name).canonicalize().unwrap();
        assert!(end.starts_with(&out), "{name} leads to {}", end.display());
    }
    let text =
        |name: &str| links.get(&name.to_owned()).map(|target| String::from_utf8_lossy(target).into_owned());
    assert_eq!(text("a/xxx.xxx.xxx.xxx~2").as_deref(), Some("."), "{links:?}");
    assert_eq!(text("a/xxx.xxx.xxx.xxx/out").as_deref(), Some("../.."), "{links:?}");
    assert_eq!(text("b/c/root").as_deref(), Some("../.."), "{links:?}");
    assert_eq!(text("b/c/out").as_deref(), Some("."), "{links:?}");
    assert_eq!(text("d/fine").as_deref(), Some("../a/xxx.xxx.xxx.xxx"), "{links:?}");
    for left_out in ["b/c/far", "d/rule"] {
        assert!(log.contains(&format!("left out: {left_out}: a link that leads out of the folder")), "{log}");
    }
    assert_eq!(links.len(), 5, "{links:?}");
}

/// Neither as many files of one name as there are keep it busy, nor a folder with the name of the log.
#[test]
fn names_are_made_unique_in_one_step_each() {
    let from = tempfile::tempdir().unwrap();
    fs::create_dir(from.path().join(LOG)).unwrap();
    fs::write(from.path().join(LOG).join("kept"), "10.0.0.1").unwrap();
    for number in 0..3_000 {
        fs::write(from.path().join(format!("10.0.{}.{}", number / 250, number % 250)), "").unwrap();
    }
    let rules = Ruleset::parse("config: {obfuscate: [{type: IP, target: FilePath}]}").unwrap();
    let mut cleaner = Cleaner::new(&rules, &[]).unwrap();
    let to = tempfile::tempdir().unwrap();
    let sink = &mut Folder::new(&to.path().join("out"));
    cleaner.clean(from.path(), &mut tempfile::tempfile().unwrap(), sink).unwrap();
    assert_eq!(cleaner.taken[Path::new("xxx.xxx.xxx.xxx")], 3_000);
    let files = files(&to.path().join("out"));
    assert_eq!(files["obfuscation.log/kept"], b"10.0.0.1");
    assert!(has(&files["obfuscation.log~2"], "3001 files, 0 left out"), "{:?}", files.keys().take(4));
    assert!(files.contains_key("xxx.xxx.xxx.xxx~3000") && files.len() == 3_002, "{}", files.len());
}

/// What cannot be written is named, by its obfuscated path.
#[test]
fn an_error_of_the_output_names_the_path() {
    let from = tempfile::tempdir().unwrap();
    fs::write(from.path().join("10.0.0.1"), "a").unwrap();
    fs::write(from.path().join("b"), "b").unwrap();
    // A rule that makes a file stand below another one.
    let rules = Ruleset::parse(
        "config: {obfuscate: [{type: IP, target: FilePath}, {type: Keywords, target: FilePath, replacement: {b: xxx.xxx.xxx.xxx/b}}]}",
    )
    .unwrap();
    let mut cleaner = Cleaner::new(&rules, &[]).unwrap();
    let to = tempfile::tempdir().unwrap();
    let sink = &mut Folder::new(&to.path().join("out"));
    let error = cleaner.clean(from.path(), &mut tempfile::tempfile().unwrap(), sink).unwrap_err();
    assert!(error.to_string().starts_with("xxx.xxx.xxx.xxx"), "{error}");
}

#[test]
fn a_folder_that_is_not_there_is_no_empty_archive() {
    let mut cleaner = Cleaner::new(&Ruleset::usual(), &[]).unwrap();
    let to = tempfile::tempdir().unwrap();
    let sink = &mut Folder::new(&to.path().join("out"));
    let error = cleaner.clean(Path::new("/no/such"), &mut tempfile::tempfile().unwrap(), sink).unwrap_err();
    assert!(matches!(error, CleanError::Io(_)), "{error}");
    let empty = tempfile::tempdir().unwrap();
    let error = cleaner.clean(empty.path(), &mut tempfile::tempfile().unwrap(), sink).unwrap_err();
    assert!(matches!(error, CleanError::Empty), "{error}");
    assert!(!to.path().join("out").exists());
}
