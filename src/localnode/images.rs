//! Finds the program that replaces an image: images are not pulled, and nothing is unpacked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The last part of the name of this program's own image, in any registry.
const OWN: &str = "admit";
/// The paths of this program in its own image, as commands may name it.
const OWN_PROGRAMS: [&str; 4] = ["/admit", "/usr/bin/admit", "/usr/local/bin/admit", "admit"];
/// The program of a must-gather image if its container has no command.
const GATHER: &str = "usr/bin/gather";

/// The programs that replace images.
#[derive(Clone, Debug, Default)]
pub struct Images {
    folders: BTreeMap<String, PathBuf>,
}

/// The name of an image, and the folder that replaces it: `NAME=DIR`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunImage {
    name: String,
    folder: PathBuf,
}

/// Why a text does not name an image and a folder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunImageError {
    #[error("give it as NAME=DIR, such as quay.io/openshift/origin-must-gather=./gather-scripts")]
    Form,
    #[error("`{}` is no folder", .0.display())]
    NoFolder(PathBuf),
}

impl FromStr for RunImage {
    type Err = RunImageError;

    fn from_str(text: &str) -> Result<Self, RunImageError> {
        let (name, folder) = text.split_once('=').ok_or(RunImageError::Form)?;
        if name.is_empty() || folder.is_empty() {
            return Err(RunImageError::Form);
        }
        match Path::new(folder).canonicalize() {
            Ok(folder) if folder.is_dir() => Ok(Self { name: name.to_owned(), folder }),
            _ => Err(RunImageError::NoFolder(folder.into())),
        }
    }
}

/// The replacement of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Image {
    /// This program.
    Own,
    /// The programs of a folder, and in addition those of this machine.
    Folder(PathBuf),
}

/// A program with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    pub(super) args: Vec<String>,
}

impl FromIterator<RunImage> for Images {
    fn from_iter<I: IntoIterator<Item = RunImage>>(images: I) -> Self {
        Self { folders: images.into_iter().map(|RunImage { name, folder }| (name, folder)).collect() }
    }
}

impl Images {
    /// Returns the replacement of `image`; a folder for a name without a tag replaces all tags.
    pub(super) fn find(&self, image: &str) -> Option<Image> {
        let folder = self.folders.get(image).or_else(|| self.folders.get(repository(image)));
        if let Some(folder) = folder {
            return Some(Image::Folder(folder.clone()));
        }
        let own = repository(image).rsplit('/').next() == Some(OWN);
        own.then_some(Image::Own)
    }
}

/// Returns the error about an image without a replacement.
pub(super) fn remedy(image: &str) -> String {
    format!(
        "no image is pulled on this machine, and {image:?} is not admit's own: start `admit up` with --run-image {image}=DIR, \
         and DIR/{GATHER}, or the container's command, runs in its place"
    )
}

impl Image {
    /// Returns the program for `command` and `args` of the container; `own` is the path of this program.
    pub(super) fn program(&self, own: &Path, command: &[String], args: &[String]) -> Program {
        let Some((first, rest)) = command.split_first() else {
            let path = match self {
                Self::Own => own.to_owned(),
                Self::Folder(folder) => folder.join(GATHER),
            };
            return Program { path, args: args.to_vec() };
        };
        let path = match self {
            Self::Own if OWN_PROGRAMS.contains(&first.as_str()) => own.to_owned(),
            Self::Folder(folder) if in_folder(folder, first).is_file() => in_folder(folder, first),
            Self::Own | Self::Folder(_) => PathBuf::from(first),
        };
        Program { path, args: rest.iter().chain(args).cloned().collect() }
    }
}

fn in_folder(folder: &Path, program: &str) -> PathBuf {
    folder.join(program.trim_start_matches('/'))
}

/// Returns an image's name without tag and digest.
fn repository(image: &str) -> &str {
    let image = image.split('@').next().unwrap_or(image);
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        _ => image,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_images_and_named_ones_are_found_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let named: RunImage = format!("quay.io/x/gather={}", folder.display()).parse().unwrap();
        let exact: RunImage = format!("y:1={}", folder.display()).parse().unwrap();
        let images: Images = [named, exact].into_iter().collect();
        for own in ["admit", "admit:0.1.0", "localhost:5000/team/admit:1", "r.example/admit@sha256:00"] {
            assert_eq!(images.find(own), Some(Image::Own), "{own}");
        }
        for theirs in ["quay.io/x/gather", "quay.io/x/gather:v4", "quay.io/x/gather@sha256:00", "y:1"] {
            assert_eq!(images.find(theirs), Some(Image::Folder(folder.clone())), "{theirs}");
        }
        for none in ["busybox", "admitted", "y", "y:2", "x/gather", "localhost:5000/admit/more"] {
            assert_eq!(images.find(none), None, "{none}");
        }
        assert!(remedy("busybox").contains("--run-image busybox=DIR"));
    }

    #[test]
    fn texts_that_name_no_folder_are_refused() {
        assert_eq!("busybox".parse::<RunImage>(), Err(RunImageError::Form));
        assert_eq!("=/tmp".parse::<RunImage>(), Err(RunImageError::Form));
        assert_eq!("x=/no/such".parse::<RunImage>(), Err(RunImageError::NoFolder("/no/such".into())));
    }

    #[test]
    fn commands_are_those_of_the_folder_then_of_the_machine() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("usr/bin")).unwrap();
        std::fs::write(folder.path().join("usr/bin/gather"), "").unwrap();
        let own = Path::new("/here/admit");
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let run = |image: &Image, command: &[&str], args: &[&str]| {
            let Program { path, args } = image.program(own, &words(command), &words(args));
            (path, args)
        };
        let theirs = Image::Folder(folder.path().to_owned());
        let gather = folder.path().join("usr/bin/gather");
        assert_eq!(run(&Image::Own, &[], &["gather"]), (own.to_owned(), words(&["gather"])));
        assert_eq!(run(&Image::Own, &["/admit", "a"], &["b"]), (own.to_owned(), words(&["a", "b"])));
        assert_eq!(run(&Image::Own, &["/bin/sh"], &[]), (PathBuf::from("/bin/sh"), vec![]));
        assert_eq!(run(&theirs, &[], &["x"]), (gather.clone(), words(&["x"])));
        assert_eq!(run(&theirs, &["/usr/bin/gather"], &[]), (gather, vec![]));
        assert_eq!(run(&theirs, &["/bin/sh", "-c"], &[]), (PathBuf::from("/bin/sh"), words(&["-c"])));
    }
}
