//! Files and folders that only their owner may open: certificates, keys, what the API server stores. Made so before they
//! hold a byte, and mended where an older version, or somebody else, made them otherwise.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const FILE: u32 = 0o600;
const FOLDER: u32 = 0o700;
/// What others than the owner may do.
const OTHERS: u32 = 0o077;

/// Makes a folder where it is missing, with the folders above it, which are made as any other.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
        fs::create_dir_all(above)?;
    }
    match DirBuilder::new().mode(FOLDER).create(path) {
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}

/// A new file. What is there already is not opened, whatever it is: in a folder that is shared it may be somebody else's.
///
/// # Errors
/// When it is there, or cannot be made.
pub(crate) fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(FILE).open(path)
}

/// Writes `text` to a new file beside `path`, then renames it over that, so that a reader never sees half.
///
/// # Errors
/// When the folder cannot be written.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let (beside, mut file) = loop {
        let beside = beside(path);
        match new_file(&beside) {
            // Of a process of the same number that was killed, or planted by somebody.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => break (beside, made?),
        }
    };
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    let replaced = written.and_then(|()| fs::rename(&beside, path));
    if replaced.is_err() {
        // Told is why it failed; that it is still there, as after the end of the process, matters less.
        let _ = fs::remove_file(&beside);
    }
    replaced
}

/// The end of names that nobody has beside a file for long.
const BESIDE: &str = ".new";

/// A name beside `path` that no other call gives, of this process or another.
pub(crate) fn beside(path: &Path) -> PathBuf {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    let (process, call) = (std::process::id(), CALLS.fetch_add(1, Ordering::Relaxed));
    name.push(format!(".{process}-{call}{BESIDE}"));
    path.with_file_name(name)
}

/// The name [beside](beside) which this one was given: left by a process that was killed.
pub(crate) fn left_beside(name: &OsStr) -> Option<&str> {
    let (of, number) = name.to_str()?.strip_suffix(BESIDE)?.rsplit_once('.')?;
    let (process, call) = number.split_once('-')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(process) && is_number(call)).then_some(of)
}

/// What [`mend`] found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Note {
    /// Others could open these, and now cannot: the first of them with the mode it had, and how many there are.
    Closed { first: PathBuf, mode: u32, number: usize },
    /// Others can enter this folder still: it holds what is not ours, or belongs to somebody else.
    Shared { folder: PathBuf, mode: u32 },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed { first, mode, number } => {
                write!(f, "`{}` (mode {mode:04o})", first.display())?;
                if *number > 1 {
                    write!(f, " and {} more files and folders", number - 1)?;
                }
                f.write_str(
                    " could be opened by others, and is now for the owner alone; secrets may have been read",
                )
            }
            Self::Shared { folder, mode } => write!(
                f,
                "`{}` can be entered by others (mode {mode:04o}) and stays so, for it is shared with other things; what \
                 is written there is for the owner alone",
                folder.display()
            ),
        }
    }
}

/// Takes from others what they may do in `folder`, which need not be there: to the entries that `own` names, with all that
/// lies in them, and to the folder itself if it holds nothing else. Links are left alone.
///
/// # Errors
/// When the folder cannot be read.
pub(crate) fn mend(folder: &Path, own: impl Fn(&OsStr) -> bool) -> io::Result<Vec<Note>> {
    let about = match fs::metadata(folder) {
        Ok(about) => about,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    // A file in the place of a folder is the trouble of whoever wants to write there.
    if !about.is_dir() {
        return Ok(Vec::new());
    }
    let mut closed = Vec::new();
    let mut alone = true;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if own(&entry.file_name()) {
            close_all(&entry.path(), &mut closed)?;
        } else {
            alone = false;
        }
    }
    let mut notes = Vec::new();
    let mode = about.permissions().mode();
    if mode & OTHERS != 0 {
        if alone && close(folder, &about).is_ok() {
            closed.insert(0, (folder.to_owned(), mode));
        } else {
            notes.push(Note::Shared { folder: folder.to_owned(), mode: mode & 0o7777 });
        }
    }
    if let Some((first, mode)) = closed.first() {
        let note = Note::Closed { first: first.clone(), mode: mode & 0o7777, number: closed.len() };
        notes.insert(0, note);
    }
    Ok(notes)
}

fn close_all(path: &Path, closed: &mut Vec<(PathBuf, u32)>) -> io::Result<()> {
    let about = fs::symlink_metadata(path)?;
    let mode = about.permissions().mode();
    if !about.is_file() && !about.is_dir() {
        return Ok(());
    }
    // What belongs to somebody else is theirs to close.
    if mode & OTHERS != 0 && close(path, &about).is_ok() {
        closed.push((path.to_owned(), mode));
    }
    if about.is_dir() {
        for entry in fs::read_dir(path)? {
            close_all(&entry?.path(), closed)?;
        }
    }
    Ok(())
}

fn close(path: &Path, about: &Metadata) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(about.permissions().mode() & 0o7777 & !OTHERS))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn file(path: &Path, mode: u32) {
        fs::write(path, "secret").unwrap();
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn folder(path: &Path, mode: u32) {
        fs::create_dir(path).unwrap();
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn ours(name: &OsStr) -> bool {
        ["key", "link", "archives"].iter().any(|own| name == *own)
    }

    #[test]
    fn what_is_made_is_for_the_owner_from_the_first_byte() {
        let place = tempfile::tempdir().unwrap();
        let made = place.path().join("above/state");
        make_folder(&made).unwrap();
        make_folder(&made).unwrap();
        assert_eq!(mode(&made), 0o700);
        // Left by a process that was killed, or planted by somebody: neither is written to.
        let elsewhere = place.path().join("elsewhere");
        fs::write(&elsewhere, "theirs").unwrap();
        let call = beside(&made.join("ca.key"));
        let (process, call) = call.to_str().unwrap().rsplit_once('-').unwrap();
        let call: u64 = call.strip_suffix(".new").unwrap().parse().unwrap();
        // Other tests of this process give names meanwhile.
        for next in call + 1..call + 100 {
            symlink(&elsewhere, format!("{process}-{next}.new")).unwrap();
        }
        replace(&made.join("ca.key"), "key").unwrap();
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "theirs");
        assert_eq!(fs::read_to_string(made.join("ca.key")).unwrap(), "key");
        assert_eq!(mode(&made.join("ca.key")), 0o600);
        assert!(new_file(&made.join("ca.key")).is_err());
    }

    #[test]
    fn writers_at_the_same_time_leave_what_one_of_them_wrote() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("token");
        let texts: Vec<String> = (0..8).map(|writer| writer.to_string().repeat(10_000)).collect();
        std::thread::scope(|scope| {
            for text in &texts {
                scope.spawn(|| (0..20).for_each(|_| replace(&path, text).unwrap()));
            }
        });
        assert!(texts.contains(&fs::read_to_string(&path).unwrap()));
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "nothing is left beside it");
        let given = beside(&path);
        assert_ne!(given, beside(&path));
        assert_eq!(left_beside(given.file_name().unwrap()), Some("token"));
        for other in ["token.new", "token", "a-b.new", "token.1-.new"] {
            assert_eq!(left_beside(OsStr::new(other)), None, "{other}");
        }
    }

    #[test]
    fn what_is_ours_is_closed_with_all_that_lies_in_it() {
        let place = tempfile::tempdir().unwrap();
        let state = place.path().join("state");
        assert_eq!(mend(&state, ours).unwrap(), []);
        folder(&state, 0o755);
        file(&state.join("key"), 0o644);
        folder(&state.join("archives"), 0o750);
        file(&state.join("archives/one"), 0o640);
        file(&state.join("archives/two"), 0o600);
        file(&place.path().join("elsewhere"), 0o644);
        symlink(place.path().join("elsewhere"), state.join("link")).unwrap();
        let notes = mend(&state, ours).unwrap();
        assert_eq!(notes, [Note::Closed { first: state.clone(), mode: 0o755, number: 4 }]);
        assert!(notes[0].to_string().contains("(mode 0755) and 3 more files and folders could be opened"));
        for (path, expected) in [("", 0o700), ("key", 0o600), ("archives", 0o700), ("archives/one", 0o600)] {
            assert_eq!(mode(&state.join(path)), expected, "{path}");
        }
        assert_eq!(mode(&place.path().join("elsewhere")), 0o644);
        assert_eq!(mend(&state, ours).unwrap(), []);
    }

    #[test]
    fn a_folder_that_is_shared_with_other_things_stays_as_it_is() {
        let place = tempfile::tempdir().unwrap();
        let shared = place.path().join("shared");
        folder(&shared, 0o755);
        file(&shared.join("key"), 0o644);
        file(&shared.join("theirs"), 0o644);
        let notes = mend(&shared, ours).unwrap();
        let expected = [
            Note::Closed { first: shared.join("key"), mode: 0o644, number: 1 },
            Note::Shared { folder: shared.clone(), mode: 0o755 },
        ];
        assert_eq!(notes, expected);
        assert_eq!((mode(&shared), mode(&shared.join("theirs"))), (0o755, 0o644));
        assert_eq!(mode(&shared.join("key")), 0o600);
    }
}
