//! The image, without a container engine: the Containerfile is read as text, and what its build is given is tried out in a
//! folder of its own.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::repository::{cargo, root};

/// `COPY` of the build: files and folders of the repository, and where they go.
struct Copied {
    sources: Vec<String>,
    target: String,
}

#[test]
fn the_image_holds_the_program_and_nothing_else_that_runs() {
    let (build, image) = stages();
    assert_eq!(image[0].1, "scratch");
    let words: Vec<&str> = image.iter().map(|(word, _)| word.as_str()).collect();
    assert!(!words.contains(&"RUN"), "scratch has no shell");
    assert!(image.contains(&("USER".to_owned(), "65532:65532".to_owned())), "{image:?}");
    assert!(image.contains(&("ENTRYPOINT".to_owned(), "[\"/admit\"]".to_owned())), "{image:?}");
    for (word, rest) in image.iter().filter(|(word, _)| word == "COPY") {
        assert!(rest.starts_with("--from="), "{word} {rest}: the image takes from the build alone");
    }
    // The version that the manifest asks for is the one that is built with.
    let manifest: toml::Table =
        toml::from_str(&fs::read_to_string(root().join("Cargo.toml")).unwrap()).unwrap();
    let rust = manifest["workspace"]["package"]["rust-version"].as_str().unwrap();
    assert!(build.iter().any(|(word, rest)| word == "ARG" && rest == &format!("RUST={rust}")), "{build:?}");
}

/// An everyday build is made soon; what is shipped and measured is made with all that the compiler has.
#[test]
fn what_is_shipped_and_measured_is_built_with_link_time_work() {
    let manifest: toml::Table =
        toml::from_str(&fs::read_to_string(root().join("Cargo.toml")).unwrap()).unwrap();
    let profile = |name: &str, key: &str| manifest["profile"][name].get(key).cloned();
    assert_eq!(profile("release", "lto"), Some("off".into()));
    assert_eq!(
        (profile("dist", "lto"), profile("dist", "codegen-units")),
        (Some("fat".into()), Some(1.into()))
    );
    assert_eq!(profile("bench", "inherits"), Some("dist".into()));
    let read = |path: PathBuf| fs::read_to_string(path).unwrap();
    let scripts = fs::read_dir(root().join("scripts")).unwrap();
    let mut builds: Vec<String> = scripts.map(|entry| read(entry.unwrap().path())).collect();
    builds.push(read(root().join("deploy/Containerfile")));
    for text in builds {
        let everyday = ["--release", "target/release", "profile release", "PROFILE:-release"];
        assert!(everyday.iter().all(|words| !text.contains(words)), "an everyday build:\n{text}");
    }
}

/// That it compiles follows: cargo reads every manifest of the workspace, and the compiler what it says that it has read.
#[test]
fn the_build_is_given_all_that_the_program_is_made_of() {
    let folder = tempfile::tempdir().unwrap();
    for copied in copies() {
        copied.play(folder.path());
    }
    let metadata = cargo()
        .args(["metadata", "--locked", "--offline", "--no-deps", "--format-version=1"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(metadata.status.success(), "{}", String::from_utf8_lossy(&metadata.stderr));
    assert!(folder.path().join("Cargo.lock").is_file(), "the build is --locked");

    let sources = sources();
    assert!(sources.len() > 500, "only {} files are said to be compiled", sources.len());
    let absent: Vec<_> = sources.iter().filter(|source| !folder.path().join(source).is_file()).collect();
    assert!(absent.is_empty(), "no COPY of the Containerfile brings {absent:#?}");
}

/// The libraries that the program is made of; what it has beside them is `src/main.rs`.
const LIBRARIES: &[&str] =
    &["admit", "admit_apimachinery", "admit_apiserver", "admit_cel", "admit_policy", "admit_serving"];

/// The files that the libraries were compiled from, those that they include among them, from the root.
fn sources() -> BTreeSet<PathBuf> {
    LIBRARIES.iter().flat_map(|name| sources_of(name)).collect()
}

/// The compiler lists them beside the library, as a rule of make. Of several builds the newest counts that is one of this
/// folder: `cargo package` builds a copy of a package, with the paths of that.
fn sources_of(library: &str) -> Vec<PathBuf> {
    let built = Path::new(env!("CARGO_BIN_EXE_admit")).with_file_name("deps");
    let entries = fs::read_dir(&built).unwrap().map(|entry| entry.unwrap());
    let mut builds: Vec<_> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let build = name.strip_prefix(&format!("lib{library}-"))?.strip_suffix(".rlib")?.to_owned();
            Some((entry.metadata().unwrap().modified().unwrap(), build))
        })
        .collect();
    builds.sort();
    let mut rules = builds.iter().rev().map(|(_, build)| listed(&built.join(format!("{library}-{build}.d"))));
    let ours = |files: &Vec<PathBuf>| files.iter().all(|file| root().join(file).is_file());
    rules.find(ours).unwrap_or_else(|| panic!("no {library} of ours in {}", built.display()))
}

/// The files of a rule, from the root.
fn listed(rule: &Path) -> Vec<PathBuf> {
    let rules = fs::read_to_string(rule).unwrap();
    let (_, files) = rules.lines().next().unwrap().split_once(": ").unwrap();
    // A blank in a name is escaped.
    let files = files.replace("\\ ", "\0");
    let files = files.split(' ').map(|file| root().join(file.replace('\0', " ")));
    files.map(|file| file.strip_prefix(root()).map_or_else(|_| file.clone(), Path::to_owned)).collect()
}

impl Copied {
    /// As a container engine does it: of a folder the content, links as links.
    fn play(&self, folder: &Path) {
        let target = folder.join(&self.target);
        for source in &self.sources {
            let from = root().join(source);
            assert!(from.exists(), "COPY {source}: there is no such file");
            if from.is_dir() || !(self.target.ends_with('/') || self.target == ".") {
                place(&from, &target);
            } else {
                place(&from, &target.join(from.file_name().unwrap()));
            }
        }
    }
}

fn place(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    if from.is_symlink() {
        symlink(fs::read_link(from).unwrap(), to).unwrap();
    } else if from.is_dir() {
        for entry in fs::read_dir(from).unwrap() {
            let name = entry.unwrap().file_name();
            place(&from.join(&name), &to.join(&name));
        }
    } else {
        fs::copy(from, to).unwrap();
    }
}

/// What the build takes from the repository, into its work folder.
fn copies() -> Vec<Copied> {
    let (build, _) = stages();
    let copies = build.iter().filter(|(word, rest)| word == "COPY" && !rest.starts_with("--"));
    let copies = copies.map(|(_, rest)| {
        let (sources, target) = rest.rsplit_once(' ').unwrap();
        assert!(!target.starts_with('/'), "COPY {rest}: into the work folder");
        Copied { sources: sources.split(' ').map(ToOwned::to_owned).collect(), target: target.to_owned() }
    });
    copies.collect()
}

type Instructions = Vec<(String, String)>;

/// The build and the image itself, as instructions and what they are given.
fn stages() -> (Instructions, Instructions) {
    let text = fs::read_to_string(root().join("deploy/Containerfile")).unwrap();
    let mut instructions: Instructions = joined(&text)
        .into_iter()
        .map(|line| line.split_once(' ').map(|(word, rest)| (word.to_owned(), rest.to_owned())).unwrap())
        .collect();
    let known = ["ARG", "FROM", "WORKDIR", "COPY", "RUN", "USER", "ENTRYPOINT", "LABEL", "EXPOSE", "ENV"];
    assert!(instructions.iter().all(|(word, _)| known.contains(&word.as_str())), "{instructions:?}");
    let last = instructions.iter().rposition(|(word, _)| word == "FROM").unwrap();
    let image = instructions.split_off(last);
    (instructions, image)
}

/// Instructions, with continued lines as one, without remarks.
fn joined(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#') && !line.is_empty());
    let mut instructions: Vec<String> = Vec::new();
    let mut continued = false;
    for line in lines {
        let body = line.trim_end_matches('\\').trim();
        match instructions.last_mut().filter(|_| continued) {
            Some(last) => *last += &format!(" {body}"),
            None => instructions.push(body.to_owned()),
        }
        continued = line.ends_with('\\');
    }
    instructions
}
